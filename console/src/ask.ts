// What a path of the API answers, for a page: asked anew when the question or the login changes
// and, where the page wants it, after some time, only while the page is in sight. The last answer
// stays while a new one is under way or fails.

import { effect } from '@preact/signals';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { api, session, type Failure, type Outcome, type Parameters } from './api';
import { page } from './route';

export interface Answered<T> {
  /** The last answer. */
  data: T | null;
  /** When it came. */
  at_ms: number;
  /** What went wrong with the last question; null if nothing did. */
  failure: Failure | null;
  isRunning: boolean;
  /** Asks now. */
  again: () => void;
}

type State<T> = Omit<Answered<T>, 'again'>;

const NOTHING = { data: null, at_ms: 0, failure: null, isRunning: true };

/** Whether asking the same again is no help: the question is wrong, or who asks may not. */
export function isRefused(failure: Failure | null | undefined): boolean {
  return failure != null && [400, 401, 403, 404].includes(failure.status);
}

/** Whether the server has not said anything about the question: it is away, loading, or too busy. A question that
 * took too long is answered: the same again would only take as long. */
export function isUnanswered(failure: Failure | null | undefined): boolean {
  return failure != null && failure.kind !== 'timeout' && (failure.kind === 'network' || (failure.status >= 502 && failure.status <= 504));
}

/** How often a server that is away is asked again. */
const AWAY_MS = 2000;

/** How often a page asks again that wants to every `every_ms`, null never: what is refused is not asked
 * again, and what is not answered is until it is. */
export function nextAsk(every_ms: number | null, ...failures: (Failure | null | undefined)[]): number | null {
  if (failures.some(isUnanswered)) return Math.min(AWAY_MS, every_ms ?? AWAY_MS);
  return failures.some(isRefused) ? null : every_ms;
}

/** Asks again `every_ms` after each answer, null never; what fell into the time out of sight is made up for once. */
export function useRefresh(every_ms: number | null, isRunning: boolean, again: () => void): void {
  const latest = useRef(again);
  latest.current = again;
  useEffect(() => {
    if (every_ms === null || isRunning) return;
    let isDue = false;
    const turn = () => {
      isDue = document.hidden;
      if (!isDue) latest.current();
    };
    const seen = () => { if (isDue) turn(); };
    const timer = setInterval(turn, Math.max(1000, every_ms));
    document.addEventListener('visibilitychange', seen);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [every_ms, isRunning]);
}

/** Asks `path`; again `every_ms` after each answer, if given. */
export function useAnswer<T>(path: string, parameters: Parameters, every_ms?: number): Answered<T> {
  return useAsked((signal) => api<T>(path, parameters, { signal }), JSON.stringify([path, parameters]), every_ms);
}

/** The same with any way of asking, of which `about` says what it asks for. */
export function useAsked<T>(question: (signal: AbortSignal) => Promise<Outcome<T>>, about: string, every_ms?: number): Answered<T> {
  const [state, setState] = useState<State<T>>(NOTHING);
  const ask = useRef(() => {});
  const login = session.value;
  // What one user saw is not for the next.
  useEffect(() => () => setState(NOTHING), [login]);
  useEffect(() => {
    const abort = new AbortController();
    let isAsking = false;
    ask.current = async () => {
      if (isAsking) return;
      isAsking = true;
      setState((state) => ({ ...state, isRunning: true }));
      const outcome = await question(abort.signal);
      isAsking = false;
      if (abort.signal.aborted) return;
      setState((state) => (outcome.ok
        ? { data: outcome.data, at_ms: Date.now(), failure: null, isRunning: false }
        : { ...state, failure: outcome, isRunning: false }));
    };
    ask.current();
    return () => abort.abort();
  }, [login, about]);
  const again = useCallback(() => ask.current(), []);
  useRefresh(nextAsk(every_ms ?? null, state.failure), state.isRunning, again);
  return { ...state, again };
}

/** Runs what the address of the page `name` asks for: now, and when `request` or the login changes. */
export function useRuns(name: string, request: () => string, run: () => void, cancel: () => void): void {
  useEffect(() => {
    let last = '';
    const dispose = effect(() => {
      const next = `${session.value} ${request()}`;
      if (next !== last && page.value === name) run();
      last = next;
    });
    return () => { dispose(); cancel(); };
  }, []);
}
