// Asks again and again while somebody looks: not while the page is hidden, never twice at a time,
// and after a missing login only when somebody has logged in.

import { useEffect } from 'preact/hooks';
import { loginNeeded, session } from '../api';

/** Calls `ask` at once and then every `every_ms`; null: once. */
export function usePolling(ask: (signal: AbortSignal) => Promise<void>, every_ms: number | null): void {
  const login = session.value;
  useEffect(() => {
    const ended = new AbortController();
    let isAsking = false;
    const turn = async () => {
      if (isAsking || document.hidden) return;
      isAsking = true;
      await ask(ended.signal);
      isAsking = false;
    };
    void turn();
    const timer = every_ms === null ? undefined : setInterval(() => { if (loginNeeded.peek() === null && !isRefused()) void turn(); }, every_ms);
    const seen = () => { if (every_ms !== null && !document.hidden) void turn(); };
    document.addEventListener('visibilitychange', seen);
    return () => {
      ended.abort();
      clearInterval(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [every_ms, login]);
}

let refusedAt = -1;

/** Notes that this login does not suffice: asking again would show the dialog again. */
export function noteRefusal(): void {
  refusedAt = session.peek();
}

function isRefused(): boolean {
  return refusedAt === session.peek();
}
