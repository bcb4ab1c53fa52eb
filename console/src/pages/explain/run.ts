// What the page is asked to explain, all of it in the address, and what the server said:
//   q        the expression
//   instant  1: at the end of the range only, not at each step
//   step, range, from, to  as on the Query page
//   node     the node that is chosen
//   depth    levels of the tree that are open; all without it
//   fold     nodes of which the opposite holds, as 3,17

import { batch, computed, signal } from '@preact/signals';
import { params, setParams } from '../../route';
import { ask, NOTHING, runNow, type Answered, type Run } from '../query/run';
import { forget } from './chosen';
import type { Explanation } from './nodes';

/** The expression. The editor knows no other line ends. */
export const text = computed(() => (params.value.get('q') ?? '').replace(/\r\n?/g, '\n'));
export const isInstant = computed(() => params.value.get('instant') === '1');

/** What the server said of it. */
export const answer = signal<Answered<Explanation> | null>(null);
/** When it was evaluated. */
export const run = signal<Run | null>(null);
export const isRunning = signal(false);

let controller: AbortController | null = null;

/** Ends what runs, as if it had not been asked. */
export function leave(): void {
  controller?.abort();
  controller = null;
  isRunning.value = false;
}

/** Ends what runs, and says so. */
export function cancel(): void {
  if (!isRunning.peek()) return;
  leave();
  const failure = { status: 0, kind: 'canceled', text: 'you cancelled the query' };
  const before = answer.peek()?.text === text.peek() ? answer.peek() : null;
  answer.value = { ...(before ?? NOTHING), text: text.peek(), failure };
}

/** Asks for the explanation of what the address names. */
export async function explain(): Promise<void> {
  leave();
  const asked = text.peek();
  if (asked.trim() === '') {
    answer.value = null;
    return;
  }
  const mine = new AbortController();
  controller = mine;
  isRunning.value = true;
  const now = runNow(!isInstant.peek());
  const before = answer.peek()?.data?.range === now.isRange ? answer.peek() : null;
  const found = await ask<Explanation>('explain', asked, now, before, mine.signal);
  if (mine.signal.aborted) return;
  batch(() => {
    answer.value = found;
    run.value = now;
    isRunning.value = false;
  });
}

/** Another expression: nodes of the last one mean nothing. */
export function setText(next: string): void {
  forget();
  setParams({ q: next, node: null, fold: null, depth: null });
}
