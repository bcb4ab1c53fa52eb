// What the heat map shows: counts by minute of arrival and by band of age, the youngest band first.

import { computed } from '@preact/signals';
import type { Band, HeatGrid } from '../../components/heatgrid';
import { totals } from './ask';
import { minutes } from './minutes';
import { ages } from './state';
import { ageText } from './text';

const MINUTE_MS = 60_000;

/** The bands up to each bound, and that above the last. */
function bandsOf(bounds: number[], isLate: boolean): Band[] {
  const names = bounds.map(ageText);
  const behind = isLate ? 'behind the newest' : 'behind the clock';
  const bands = names.map((name, at) => (at === 0
    ? { edge: '0s', text: `up to ${name} ${behind}${isLate ? '' : ', or ahead of it'}` }
    : { edge: names[at - 1]!, text: `${names[at - 1]} to ${name} ${behind}` }));
  return [...bands, { edge: names.at(-1) ?? '0s', text: `more than ${names.at(-1)} ${behind}` }];
}

export const grid = computed<HeatGrid>(() => {
  const { ageBoundsMs: bounds = [], stepMs: step_ms = MINUTE_MS } = totals.value?.heatMap ?? {};
  const isLate = ages.value === 'late';
  const bands = bandsOf(bounds, isLate);
  const cells = minutes.value.map(({ lateAges, arrivalAges }) => {
    const column = bands.map((): number | null => null);
    for (const [at, samples] of isLate ? lateAges : arrivalAges) column[at] = samples;
    return column;
  });
  return { times: minutes.value.map((minute) => minute.start), step_ms, bands, cells };
});
