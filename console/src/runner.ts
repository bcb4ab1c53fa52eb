// What a page asks for, one question at a time: the last answer stays until the next one is there,
// and no longer than the login that got it.

import { batch, signal, type ReadonlySignal } from '@preact/signals';
import { session } from './api';

export interface Runner<T> {
  /** The last answer. */
  answer: ReadonlySignal<T>;
  isRunning: ReadonlySignal<boolean>;
  /** Asks; what ran before is ended. The question is told the last answer. */
  run: (question: (signal: AbortSignal, before: T) => Promise<T>) => Promise<void>;
  /** Ends what runs, and sets the answer. */
  set: (answer: T) => void;
  /** Ends what runs, as if it had not been asked. */
  leave: () => void;
}

/** One without answer, which is `nothing`. */
export function runner<T>(nothing: T): Runner<T> {
  const answer = signal(nothing);
  const isRunning = signal(false);
  let controller = new AbortController();
  let login = session.peek();
  const leave = () => {
    controller.abort();
    isRunning.value = false;
  };
  const set = (next: T) => batch(() => {
    leave();
    answer.value = next;
  });
  // What one user saw is not for the next, whether this or the page's next question comes first.
  const renew = () => {
    if (login === session.peek()) return;
    login = session.peek();
    set(nothing);
  };
  session.subscribe(renew);
  const run: Runner<T>['run'] = async (question) => {
    renew();
    leave();
    const mine = controller = new AbortController();
    isRunning.value = true;
    const found = await question(mine.signal, answer.peek());
    if (!mine.signal.aborted) set(found);
  };
  return { answer, isRunning, run, set, leave };
}
