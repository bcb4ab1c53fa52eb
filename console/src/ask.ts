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
    let timer = 0;
    let isAsking = false;
    ask.current = async () => {
      if (isAsking) return;
      clearTimeout(timer);
      isAsking = true;
      setState((state) => ({ ...state, isRunning: true }));
      const outcome = await question(abort.signal);
      isAsking = false;
      if (abort.signal.aborted) return;
      setState((state) => (outcome.ok
        ? { data: outcome.data, at_ms: Date.now(), failure: null, isRunning: false }
        : { ...state, failure: outcome, isRunning: false }));
      // Who may not ask is not helped by asking again.
      const isRefused = !outcome.ok && outcome.status >= 400 && outcome.status < 500;
      if (every_ms !== undefined && !isRefused) timer = setTimeout(refresh, every_ms);
    };
    const refresh = () => {
      timer = 0;
      if (!document.hidden) ask.current();
    };
    // A refresh that fell into the time out of sight is made up for.
    const seen = () => { if (every_ms !== undefined && timer === 0) refresh(); };
    document.addEventListener('visibilitychange', seen);
    ask.current();
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [login, about, every_ms]);
  return { ...state, again: useCallback(() => ask.current(), []) };
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
