// What the Late page is asked to show, all of it in the address:
//   span      the last minutes: 5m to 2h; without it an hour
//   protocol  the only protocol of the totals, the charts and the heat map
//   by        what rows are about: `metric`, `sender` or `label`; without it protocols
//   order     the column that rows are sorted by, with `-` descending
//   ages      `clock`: the heat map shows all samples by the clock, not late ones by their age
//   past      the days of the history: 1d or 30d; without it 7d
//   refresh   a duration between requests, or `off`; without it ten seconds

import { computed, signal } from '@preact/signals';
import { parseDuration } from '../../clock';
import { params } from '../../route';

export type By = 'protocol' | 'metric' | 'sender' | 'label';
export type Ages = 'late' | 'clock';

export const SPANS = ['5m', '15m', '30m', '1h', '2h'];
export const DEFAULT_SPAN = '1h';
export const DEFAULT_REFRESH = '10s';

const text = (name: string) => params.value.get(name) ?? '';

/** As it is in the address, since the server says what is wrong with it. */
export const span = computed(() => text('span') || DEFAULT_SPAN);
export const protocol = computed(() => text('protocol'));
export const by = computed<By>(() => {
  const name = text('by');
  return name === 'metric' || name === 'sender' || name === 'label' ? name : 'protocol';
});
export const ages = computed<Ages>(() => (text('ages') === 'clock' ? 'clock' : 'late'));
export const refresh_ms = computed(() => parseDuration(text('refresh') || DEFAULT_REFRESH));

/** The start of the minute at the cursor, of the charts and the heat map. */
export const minute = signal<number | null>(null);
