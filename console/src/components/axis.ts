// Texts of a chart's axes: a clock of 24 hours, the day below it where it changes.

import { clockText, shifted } from '../clock';
import type { Span } from './span';

const DAY_MS = 86_400_000;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

function dayText(ms: number, withYear: boolean): string {
  const date = shifted(ms);
  const text = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  return withYear ? `${text} ${date.getUTCFullYear()}` : text;
}

/** Texts of ticks at these times, which are `step_ms` apart. */
export function timeTicks(ticks: number[], step_ms: number): string[] {
  let last = '';
  let year = 0;
  return ticks.map((ms) => {
    const newYear = shifted(ms).getUTCFullYear() !== year;
    year = shifted(ms).getUTCFullYear();
    if (step_ms >= 28 * DAY_MS) {
      const month = MONTHS[shifted(ms).getUTCMonth()] ?? '';
      return newYear ? `${month}\n${year}` : month;
    }
    const day = dayText(ms, false);
    if (step_ms >= DAY_MS) return newYear ? `${day}\n${year}` : day;
    const clock = step_ms < 1000 ? `${clockText(ms)}.${String(((ms % 1000) + 1000) % 1000).padStart(3, '0')}`
      : step_ms < 60_000 ? clockText(ms) : clockText(ms).slice(0, 5);
    const text = day === last ? clock : `${clock}\n${dayText(ms, last === '')}`;
    last = day;
    return text;
  });
}

const TICKS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200].map((s) => s * 1000),
  DAY_MS, 2 * DAY_MS, 7 * DAY_MS, 14 * DAY_MS];

/** The time near this one that is round by the chosen zone's clock, which may have changed since another. */
function roundTime(ms: number, step_ms: number): number {
  const past_ms = shifted(ms).getTime() % step_ms;
  return 2 * past_ms < step_ms ? ms - past_ms : ms - past_ms + step_ms;
}

/** Round times of the chosen zone within a span, at least `least_ms` apart, with their texts. */
export function timesIn({ from_ms, to_ms }: Span, least_ms: number): { ms: number; text: string }[] {
  const step_ms = TICKS_MS.find((ms) => ms >= least_ms) ?? Math.ceil(least_ms / DAY_MS) * DAY_MS;
  const times: number[] = [];
  for (let at = roundTime(from_ms, step_ms); at <= to_ms; at = roundTime(at + step_ms, step_ms)) {
    if (at >= from_ms) times.push(at);
  }
  const texts = timeTicks(times, Math.min(step_ms, 14 * DAY_MS));
  return times.map((ms, at) => ({ ms, text: texts[at]! }));
}
