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

/** What is known of one query. */
export interface Answered {
  text: string;
  data: Data | null;
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

const NOTHING = { data: null, failure: null, warnings: [], infos: [], took_ms: 0 };

async function one(text: string, now: Run, before: Answered | null, signal: AbortSignal): Promise<Answered> {
  const times: Parameters = now.isRange
    ? { start: now.start_ms / 1000, end: now.end_ms / 1000, step: now.step_ms / 1000 }
    : { time: now.span.to_ms / 1000 };
  const path = now.isRange ? 'query_range' : 'query';
  const outcome = await api<Data>(path, { query: text, ...times, stats: 'all' }, { method: 'POST', signal });
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
  const now: Run = { isRange: view.peek() !== 'table', ...grid() };
  const isSameKind = run.peek()?.isRange === now.isRange;
  isRunning.value = true;
  const found = await Promise.all(queries.map(({ text, isOff }) => {
    if (isOff || text.trim() === '') return null;
    const before = isSameKind ? answers.peek().find((answer) => answer?.text === text) ?? null : null;
    return one(text, now, before, mine.signal);
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
