// The minutes of an answer: those in which nothing came are there too, so that time goes evenly.

import { computed } from '@preact/signals';
import { clockText } from '../../clock';
import { count } from '../../format';
import { totals, type Minute } from './ask';
import { minute } from './state';
import { ageText, shareText } from './text';

/** All minutes of the span, ascending. */
export const minutes = computed<Minute[]>(() => {
  const data = totals.value;
  if (data === null) return [];
  const { stepMs, minutes: found } = data.heatMap;
  const at = new Map(found.map((one) => [one.start, one]));
  return Array.from({ length: Math.round(data.spanMs / stepMs) }, (_, index) => {
    const start = data.start + index * stepMs;
    return at.get(start) ?? { start, samples: 0, lateSamples: 0, lateAgeP99Ms: 0, lateAges: [], arrivalAges: [] };
  });
});

/** The age that 99 % of a minute's late samples do not exceed. */
export function p99_ms({ lateSamples, lateAgeP99Ms }: Minute): number | null {
  return lateSamples > 0 ? lateAgeP99Ms : null;
}

/** What came in the minute at the cursor. */
export const minuteText = computed<string | null>(() => {
  const shown = minutes.value.find((one) => one.start === minute.value);
  if (!shown) return null;
  const clock = clockText(shown.start).slice(0, 5);
  if (shown.samples === 0) return `${clock}: no samples`;
  const late = `${clock}: ${count(shown.samples)} samples, ${count(shown.lateSamples)} late (${shareText(shown.lateSamples, shown.samples)})`;
  const age = p99_ms(shown);
  return age === null ? late : `${late}, 99\u202f% of these no older than ${ageText(age)}`;
});

/** Moves the cursor by minutes; from nowhere it goes to the newest. */
export function moveMinute(by: number): void {
  const all = minutes.peek();
  const at = all.findIndex((one) => one.start === minute.peek());
  const next = at < 0 ? all.length - 1 : Math.max(0, Math.min(all.length - 1, at + by));
  minute.value = all[next]?.start ?? null;
}
