// What the page is asked to explain, all of it in the address, and what the server said:
//   q        the expression
//   instant  1: at the end of the range only, not at each step
//   step, range, from, to  as on the Query page
//   node     the node that is chosen
//   depth    levels of the tree that are open; all without it
//   fold     nodes of which the opposite holds, as 3,17

import { computed } from '@preact/signals';
import { params, setParams } from '../../route';
import { runner } from '../../runner';
import { ask, canceled, orLast, runNow, type Answered, type Run } from '../query/run';
import { forget } from './chosen';
import type { Explanation } from './nodes';

/** The expression. The editor knows no other line ends. */
export const text = computed(() => (params.value.get('q') ?? '').replace(/\r\n?/g, '\n'));
export const isInstant = computed(() => params.value.get('instant') === '1');

interface Shown {
  answer: Answered<Explanation> | null;
  run: Run | null;
}

const NONE: Shown = { answer: null, run: null };
const shown = runner(NONE);
export const { isRunning, leave } = shown;

/** What the server said of it. */
export const answer = computed(() => shown.answer.value.answer);
/** When it was evaluated. */
export const run = computed(() => shown.answer.value.run);

/** Ends what runs, and says so. */
export function cancel(): void {
  const before = shown.answer.peek();
  if (isRunning.peek()) shown.set({ ...before, answer: orLast(canceled(text.peek()), before.answer) });
}

/** Asks for the explanation of what the address names. */
export async function explain(): Promise<void> {
  const asked = text.peek();
  if (asked.trim() === '') return shown.set(NONE);
  const now = runNow(!isInstant.peek());
  await shown.run(async (signal, before) => {
    const found = await ask<Explanation>('explain', asked, now, signal);
    return { answer: before.run?.isRange === now.isRange ? orLast(found, before.answer) : found, run: now };
  });
}

/** Another expression: nodes of the last one mean nothing. */
export function setText(next: string): void {
  forget();
  setParams({ q: next, node: null, fold: null, depth: null });
}
