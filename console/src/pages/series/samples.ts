// The samples of a series in a time, and what is drawn of them: each one up to a limit; beyond it
// the least, mean and greatest value of equal spans, which the server computes.

import { useEffect, useState } from 'preact/hooks';
import { useAnswer, type Answered } from '../../ask';
import { send, type Failure } from '../../api';
import type { Span } from '../../components/span';
import { automaticStep } from '../query/state';

/** Milliseconds, value, late. */
export type Sample = [number, string, boolean];

export interface Page {
  key: string;
  samples: Sample[];
  /** Where the next page begins, in seconds. */
  next_start: string | null;
}

/** Samples of one request, which the server limits. */
export const PAGE_SAMPLES = 10_000;

/** Samples from `start`, in seconds. */
export function useSamples(key: string, start: number | string, span: Span): Answered<Page> {
  return useAnswer<Page>('status/series/samples', { key, start, end: span.to_ms / 1000, limit: PAGE_SAMPLES });
}

/** Values of equal spans; null where a span has no sample. */
export interface Summary {
  step_ms: number;
  times: number[];
  least: (number | null)[];
  mean: (number | null)[];
  greatest: (number | null)[];
  /** Samples that are not a number, which the others do not count. */
  nan: number;
}

interface Line {
  values: (number | string | null)[];
  timestamps: number[];
}

async function bucketsOf(match: string, span: Span, step_ms: number, aggregation: string, signal: AbortSignal): Promise<Map<number, number> | Failure> {
  const asked = { 'match[]': match, start: span.from_ms / 1000, end: span.to_ms / 1000, aggregation, step: step_ms / 1000 };
  const answer = await send('api/v1/export', asked, { method: 'POST', signal });
  if (!(answer instanceof Response)) return answer;
  const found = new Map<number, number>();
  try {
    for (const text of (await answer.text()).split('\n')) {
      if (text === '') continue;
      const { values, timestamps } = JSON.parse(text) as Line;
      timestamps.forEach((time, at) => found.set(time, Number(values[at] ?? NaN)));
    }
    return found;
  } catch (error) {
    return { status: 0, kind: 'network', text: `the answer is not complete (${String(error)})` };
  }
}

async function summarize(match: string, span: Span, signal: AbortSignal): Promise<Summary | Failure> {
  const step_ms = automaticStep(span);
  const found = await Promise.all(['min', 'avg', 'max', 'countnan'].map((name) => bucketsOf(match, span, step_ms, name, signal)));
  const failure = found.find((one) => !(one instanceof Map));
  if (failure) return failure as Failure;
  const [least, mean, greatest, nan] = found as Map<number, number>[];
  const first = Math.floor(span.from_ms / step_ms) * step_ms;
  const length = Math.floor((span.to_ms - first) / step_ms) + 1;
  const starts = Array.from({ length }, (_, at) => first + at * step_ms);
  const column = (of: Map<number, number>) => starts.map((time) => of.get(time) ?? null);
  return {
    step_ms,
    times: starts.map((time) => time + step_ms / 2),
    least: column(least!), mean: column(mean!), greatest: column(greatest!),
    nan: [...nan!.values()].reduce((sum, value) => sum + value, 0),
  };
}

interface Summarized {
  /** Of `span`; the last one stays while another is under way. */
  summary: Summary | null;
  span: Span | null;
  failure: Failure | null;
}

/** The summary of the series that `match` selects alone, anew with each `answer`; none while it is null. */
export function useSummary(match: string | null, span: Span, answer: unknown): Summarized {
  const [state, setState] = useState<Summarized>({ summary: null, span: null, failure: null });
  useEffect(() => {
    if (match === null) return;
    const abort = new AbortController();
    void summarize(match, span, abort.signal).then((made) => {
      if (abort.signal.aborted) return;
      setState((before) => ('times' in made ? { summary: made, span, failure: null } : { ...before, failure: made }));
    });
    return () => abort.abort();
  }, [match, span, answer]);
  return state;
}
