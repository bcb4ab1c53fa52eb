// Queries that were run, and those that were saved by name. This browser keeps them.

import { stored } from '../../stored';

interface Noted {
  text: string;
  at_ms: number;
}

interface Saved {
  name: string;
  /** The parameters of the address. */
  address: string;
}

const NOTED_MAX = 100;
/** The newest first. */
export const noted = stored<Noted[]>('history', []);
/** In the order of saving. */
export const saved = stored<Saved[]>('saved', []);

/** Notes that a query was run. */
export function noteQuery(text: string): void {
  if (text.trim() === '') return;
  noted.value = [{ text, at_ms: Date.now() }, ...noted.peek().filter((one) => one.text !== text)].slice(0, NOTED_MAX);
}
