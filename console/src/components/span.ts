// The time range of a page, in its address: `range=1h` (up to now) or `from=` and `to=` in
// milliseconds.

import { computed } from '@preact/signals';
import { durationText, parseDuration } from '../clock';
import { params, setParams } from '../route';

export interface Span {
  from_ms: number;
  to_ms: number;
}

/** Either a length up to now, or two times. */
export type Range = { last_ms: number } | Span;

const DEFAULT_MS = 3_600_000;

/** Whether a text is a time in milliseconds. */
export const isTime = (text: string) => /^-?\d+(\.\d+)?$/.test(text);

/** The range that the address names. */
export const range = computed<Range>(() => {
  const [from_ms, to_ms] = ['from', 'to'].map((name) => params.value.get(name) ?? '').map((text) => (isTime(text) ? Number(text) : NaN)) as [number, number];
  if (from_ms < to_ms) return { from_ms, to_ms };
  return { last_ms: parseDuration(params.value.get('range') ?? '') ?? DEFAULT_MS };
});

/** The times of a range, at this moment. */
export function spanOf(range: Range): Span {
  if ('from_ms' in range) return range;
  const to_ms = Date.now();
  return { from_ms: to_ms - range.last_ms, to_ms };
}

/** Puts a range in the address. A page of samples (`at`) began in the last one; `replace` is for a first range, which has none. */
export function setRange(range: Range, replace = false): void {
  const isFixed = 'from_ms' in range;
  setParams({
    range: isFixed ? null : durationText(range.last_ms),
    from: isFixed ? String(Math.round(range.from_ms)) : null,
    to: isFixed ? String(Math.round(range.to_ms)) : null,
    ...(replace ? {} : { at: null }),
  }, replace);
}
