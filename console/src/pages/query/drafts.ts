// The texts of the queries while they are typed. They are run together; then they are in the address.

import { computed, signal } from '@preact/signals';
import { noteQuery } from './history';
import { runAll } from './run';
import { asked, setAsked, type Asked } from './state';

/** Texts that are typed and not run yet, by place. */
const drafts = new Map<number, string>();

/** Counts how often texts were set by something else than typing. */
export const revision = signal(0);

// They end where the queries of the address change, by whatever.
computed(() => JSON.stringify(asked.value)).subscribe(() => {
  drafts.clear();
  revision.value++;
});

/** Notes what is typed. */
export function setDraft(at: number, text: string): void {
  drafts.set(at, text);
}

/** The text of a query as it is typed. */
export function draft(at: number): string | undefined {
  return drafts.get(at);
}

/** Sets a text as if it were typed. */
export function replaceDraft(at: number, text: string): void {
  drafts.set(at, text);
  revision.value++;
}

/** The letter of a query. */
export function letter(at: number): string {
  return at < 26 ? String.fromCharCode(65 + at) : String(at + 1);
}

/** The queries with what is typed. */
export function withDrafts(): Asked[] {
  return asked.peek().map((query, at) => ({ ...query, text: drafts.get(at) ?? query.text }));
}

/** Runs what is typed. */
export function runDrafts(): void {
  const queries = withDrafts();
  for (const query of queries) if (!query.isOff) noteQuery(query.text);
  const isSame = JSON.stringify(queries) === JSON.stringify(asked.peek());
  setAsked(queries);
  // The address has not changed, so nothing else runs them.
  if (isSame) void runAll();
}

/** Puts `text` in the first empty query, or in a new one. */
export function useText(text: string): void {
  const queries = withDrafts();
  const empty = queries.findIndex((query) => query.text.trim() === '');
  if (empty >= 0) queries[empty] = { text, isOff: false };
  else queries.push({ text, isOff: false });
  setAsked(queries);
}

/** A further query. */
export function addQuery(): void {
  setAsked([...withDrafts(), { text: '', isOff: false }]);
}

/** Puts queries in the place of the one at `at`. */
export function change(at: number, to: (query: Asked) => Asked[]): void {
  const queries = withDrafts().flatMap((query, place) => (place === at ? to(query) : [query]));
  setAsked(queries.length > 0 ? queries : [{ text: '', isOff: false }]);
}
