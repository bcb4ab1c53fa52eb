// Keys of charts.

import { range, spanOf, type Span } from './span';

/** Whether a key belongs to the browser or the system. */
export function isShortcut({ ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  return ctrlKey || metaKey || altKey;
}

/** The span that a key leads to, from that of the address: + and - zoom, arrows pan; undefined for other keys. */
export function spanOfKey(key: string): Span | undefined {
  const { from_ms, to_ms } = spanOf(range.peek());
  const part = (to_ms - from_ms) / 4;
  const spans: Record<string, Span> = {
    '+': { from_ms: from_ms + part, to_ms: to_ms - part },
    '-': { from_ms: from_ms - 2 * part, to_ms: to_ms + 2 * part },
    ArrowLeft: { from_ms: from_ms - part, to_ms: to_ms - part },
    ArrowRight: { from_ms: from_ms + part, to_ms: to_ms + part },
  };
  return spans[key];
}
