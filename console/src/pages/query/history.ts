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

/** Whether each of a list has a text of these names. */
const lists = (...names: string[]) => (value: unknown): boolean =>
  Array.isArray(value) && value.every((one: Record<string, unknown> | null) => names.every((name) => typeof one?.[name] === 'string'));

const NOTED_MAX = 100;
/** The newest first. */
export const noted = stored<Noted[]>('history', [], lists('text'));
/** In the order of saving. */
export const saved = stored<Saved[]>('saved', [], lists('name', 'address'));

/** Notes that a query was run. */
export function noteQuery(text: string): void {
  if (text.trim() === '') return;
  noted.value = [{ text, at_ms: Date.now() }, ...noted.peek().filter((one) => one.text !== text)].slice(0, NOTED_MAX);
}
