// Signals that localStorage keeps. Without storage (private windows) they live with the page.

import { effect, signal, type Signal } from '@preact/signals';

/** The signal kept under `name`. */
export function stored<T>(name: string, initial: T): Signal<T> {
  const key = `latewood.${name}`;
  let value = initial;
  try {
    const text = localStorage.getItem(key);
    if (text !== null) value = JSON.parse(text) as T;
  } catch { /* as if nothing were kept */ }
  const made = signal(value);
  let first = true;
  effect(() => {
    const text = JSON.stringify(made.value);
    if (first) { first = false; return; }
    try { localStorage.setItem(key, text); } catch { /* full or forbidden */ }
  });
  return made;
}
