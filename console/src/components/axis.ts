// Texts of a chart's axes: a clock of 24 hours, the day below it where it changes.

import { clockText, shifted } from '../clock';

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
