// Runs the queries of the page: whatever the address asks for, again with each refresh. The last
// answer stays until the next one is there, also while the server is away.

import { computed } from '@preact/signals';
import { isUnanswered } from '../../ask';
import { api, type Failure, type Parameters } from '../../api';
import type { Labels } from '../../format';
import type { Span } from '../../components/span';
import { runner } from '../../runner';
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

interface Shown {
  answers: (Answered | null)[];
  run: Run | null;
}

const shown = runner<Shown>({ answers: [], run: null });
export const { isRunning, leave } = shown;

/** Answers by place of the query. */
export const answers = computed(() => shown.answer.value.answers);
/** The run that they belong to. */
export const run = computed(() => shown.answer.value.run);

export const NOTHING = { data: null, failure: null, warnings: [], infos: [], took_ms: 0 };

/** When a query is evaluated that is asked now: at each step of the range, or at its end. */
export function runNow(isRange: boolean): Run {
  return { isRange, ...grid() };
}

/** What a path answers about one query. */
export async function ask<D>(path: string, text: string, now: Run, signal: AbortSignal): Promise<Answered<D>> {
  const times: Parameters = now.isRange
    ? { start: now.start_ms / 1000, end: now.end_ms / 1000, step: now.step_ms / 1000 }
    : { time: now.span.to_ms / 1000 };
  const outcome = await api<D>(path, { query: text, ...times, stats: 'all' }, { method: 'POST', signal });
  if (!outcome.ok) return { ...NOTHING, text, failure: outcome };
  return { ...NOTHING, text, data: outcome.data, warnings: outcome.warnings, infos: outcome.infos, took_ms: outcome.took_ms };
}

/** What is said of a query that was cancelled here. */
export function canceled(text: string): Answered<never> {
  return { ...NOTHING, text, failure: { status: 0, kind: 'canceled', text: 'you cancelled the query' } };
}

/** Where the server did not answer, or still loads, what it said last of the same query is still the best there is. */
export function orLast<D>(found: Answered<D>, before: Answered<D> | null | undefined): Answered<D> {
  const isKept = isUnanswered(found.failure) || found.failure?.kind === 'canceled';
  return isKept && before?.text === found.text ? { ...before, failure: found.failure } : found;
}

/** What is shown after a run. Its answers have the same times: the last ones stay together, or not at all. */
function settled(found: (Answered | null)[], now: Run, before: Shown): Shown {
  const isAnswered = found.some((one) => one && !one.failure);
  if (isAnswered || before.run?.isRange !== now.isRange) return { answers: found, run: now };
  const kept = found.map((one) => one && orLast(one, before.answers.find((last) => last?.text === one.text)));
  return { answers: kept, run: kept.some((one) => one?.data) ? before.run : now };
}

/** Does something with each query that is enabled. */
function each<R>(act: (text: string) => R): (R | null)[] {
  return asked.peek().map(({ text, isOff }) => (isOff || text.trim() === '' ? null : act(text)));
}

const isRange = () => view.peek() !== 'table';

/** Asks everything that is enabled. */
export function runAll(): Promise<void> {
  const now = runNow(isRange());
  return shown.run(async (signal, before) => {
    const found = await Promise.all(each((text) => ask<Data>(now.isRange ? 'query_range' : 'query', text, now, signal)));
    return settled(found, now, before);
  });
}

/** Ends what runs, and says so. */
export function cancel(): void {
  if (isRunning.peek()) shown.set(settled(each(canceled), runNow(isRange()), shown.answer.peek()));
}
