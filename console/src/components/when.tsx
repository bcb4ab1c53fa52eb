// A time in a table.

import { clockText, secondText, timeText } from '../clock';
import { UNKNOWN } from '../format';

/** The time on the clock today, the day of other days; the title has both, or what is given. NaN is no time. */
export function When({ ms, title }: { ms: number; title?: string }) {
  if (Number.isNaN(ms)) return <span title={title}>{UNKNOWN}</span>;
  const [day, today] = [secondText(ms).slice(0, 10), secondText(Date.now()).slice(0, 10)];
  return <time title={title ?? timeText(ms)}>{day === today ? clockText(ms) : day}</time>;
}
