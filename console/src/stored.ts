// Signals that localStorage keeps, the same in all tabs. Without storage (private windows) they live
// with the page.

import { effect, signal, type Signal } from '@preact/signals';

/** What is kept as this text; `initial` where it is none, or `isFit` finds it unfit. */
function parse<T>(text: string | null, initial: T, isFit: (value: T) => boolean): T {
  try {
    const value = JSON.parse(text ?? 'null') as T;
    return value !== null && isFit(value) ? value : initial;
  } catch {
    return initial;
  }
}

/** The signal kept under `name`; what is kept may come from anything, and is checked. */
export function stored<T>(name: string, initial: T, isFit: (value: T) => boolean = (value) => typeof value === typeof initial): Signal<T> {
  const key = `latewood.${name}`;
  let text: string | null = null;
  try { text = localStorage.getItem(key); } catch { /* as if nothing were kept */ }
  const made = signal(parse(text, initial, isFit));
  let last = JSON.stringify(made.peek());
  effect(() => {
    const text = JSON.stringify(made.value);
    if (text === last) return;
    last = text;
    try { localStorage.setItem(key, text); } catch { /* full or forbidden */ }
  });
  // Another tab has changed it.
  addEventListener('storage', (event) => {
    if (event.key !== key && event.key !== null) return;
    const value = parse(event.newValue, initial, isFit);
    last = JSON.stringify(value);
    made.value = value;
  });
  return made;
}
