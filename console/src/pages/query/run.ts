// Runs the queries of the page: whatever the address asks for, again with each refresh. The last
// answer stays until the next one is there, also while the server is away.

import { batch, signal } from '@preact/signals';
import { api, type Failure, type Parameters } from '../../api';
import type { Labels } from '../../format';
import type { Span } from '../../components/span';
import { asked, grid, view } from './state';

export type Sample = [number, string];

/** The data of an answer. */
export type Data =
  | { resultType: 'matrix'; result: { metric: Labels; values: Sample[] }[]; stats?: Stats }
  | { resultType: 'vector'; result: { metric: Labels; value: Sample }[]; stats?: Stats }
  | { resultType: 'scalar' | 'string'; result: Sample; stats?: Stats };

export interface Stats {
  samples: { samplesRead: number; seriesTouched: number };
  timings: { execTotalTime: number };
  latewood?: { samplesDecoded: number; samplesFromStatistics: number; lateSamplesMerged: number; peakBytes: number };
}

/** What is known of one query; an explanation has data of its own. */
export interface Answered<D = Data> {
  text: string;
  data: D | null;
  failure: Failure | null;
  warnings: string[];
  infos: string[];
  took_ms: number;
}

/** What was asked of the server when. */
export interface Run {
  isRange: boolean;
  span: Span;
  step_ms: number;
  start_ms: number;
  end_ms: number;
}

/** Answers by place of the query. */
export const answers = signal<(Answered | null)[]>([]);
/** The run that they belong to. */
export const run = signal<Run | null>(null);
export const isRunning = signal(false);

let controller: AbortController | null = null;

/** Ends what runs. */
export function cancel(): void {
  controller?.abort();
  controller = null;
  isRunning.value = false;
}

export const NOTHING = { data: null, failure: null, warnings: [], infos: [], took_ms: 0 };

/** When a query is evaluated that is asked now: at each step of the range, or at its end. */
export function runNow(isRange: boolean): Run {
  return { isRange, ...grid() };
}

/** What a path answers about one query. */
export async function ask<D>(path: string, text: string, now: Run, before: Answered<D> | null, signal: AbortSignal): Promise<Answered<D>> {
  const times: Parameters = now.isRange
    ? { start: now.start_ms / 1000, end: now.end_ms / 1000, step: now.step_ms / 1000 }
    : { time: now.span.to_ms / 1000 };
  const outcome = await api<D>(path, { query: text, ...times, stats: 'all' }, { method: 'POST', signal });
  if (outcome.ok) return { ...NOTHING, text, data: outcome.data, warnings: outcome.warnings, infos: outcome.infos, took_ms: outcome.took_ms };
  // Where the server did not answer, what it said last is still the best there is.
  const isAway = outcome.kind === 'network' || outcome.status === 401;
  const kept = isAway && before?.text === text ? before : NOTHING;
  return { ...kept, text, failure: outcome };
}

/** Asks everything that is enabled. */
export async function runAll(): Promise<void> {
  cancel();
  const mine = new AbortController();
  controller = mine;
  const queries = asked.peek();
  const now = runNow(view.peek() !== 'table');
  const isSameKind = run.peek()?.isRange === now.isRange;
  isRunning.value = true;
  const found = await Promise.all(queries.map(({ text, isOff }) => {
    if (isOff || text.trim() === '') return null;
    const before = isSameKind ? answers.peek().find((answer) => answer?.text === text) ?? null : null;
    return ask<Data>(now.isRange ? 'query_range' : 'query', text, now, before, mine.signal);
  }));
  if (mine.signal.aborted) return;
  const isAway = found.some((answer) => answer?.failure && answer.data);
  batch(() => {
    answers.value = found;
    // An old answer keeps its own span.
    if (!isAway || !run.peek()) run.value = now;
    isRunning.value = false;
  });
}
