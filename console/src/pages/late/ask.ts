// Asks the server how late samples came: the totals and the heat map of the chosen protocol, and
// the rows, which are another request unless they are about protocols. The last answer stays until
// the next one is there, also while the server is away.

import { computed } from '@preact/signals';
import { isUnanswered } from '../../ask';
import { api, type Failure, type Outcome } from '../../api';
import { runner } from '../../runner';
import { by, protocol, span, type By } from './state';

export interface AgesOf { p50: number; p90: number; p99: number; max: number }

export interface Figures {
  lateSamples: number;
  lateAgeMs: AgesOf;
  /** Of protocols alone. */
  samples?: number;
  delayMs?: { p99: number; p999: number };
}

export interface Row extends Figures {
  protocol?: string;
  metric?: string;
  sender?: string;
  user?: string;
  value?: string;
  /** The row of all others together. */
  isOthers?: boolean;
}

export interface Minute {
  start: number;
  samples: number;
  lateSamples: number;
  lateAgeP99Ms: number;
  /** Bands of ages and counts. */
  lateAges: [number, number][];
  arrivalAges: [number, number][];
}

interface Data {
  start: number;
  now: number;
  countedSince: number;
  spanMs: number;
  quantileError: number;
  total: Required<Figures>;
  by: By;
  /** The label by which late samples are counted, too. */
  label: string | null;
  rowsStart: number;
  rows: Row[];
  others: Figures | null;
  heatMap: { stepMs: number; ageBoundsMs: number[]; minutes: Minute[] };
}

interface Shown {
  totals: Data | null;
  rows: Data | null;
  failure: Failure | null;
  rowsFailure: Failure | null;
}

const shown = runner<Shown>({ totals: null, rows: null, failure: null, rowsFailure: null });
export const { leave } = shown;
export const isAsking = shown.isRunning;

/** Totals, minutes and protocols. */
export const totals = computed(() => shown.answer.value.totals);
/** The rows that were asked for; they say by themselves what they are about. */
export const rows = computed(() => shown.answer.value.rows);
export const label = computed(() => totals.value?.label ?? null);
/** How long the server counts, where that is not the whole span; null where it is. */
export const counted_ms = computed(() => {
  const data = totals.value;
  return data === null || data.countedSince <= data.start ? null : data.now - data.countedSince;
});
export const failure = computed(() => shown.answer.value.failure);
export const rowsFailure = computed(() => shown.answer.value.rowsFailure);

const ROWS = 64;

/** What the server refuses leaves nothing; where it is away or loads, its last words stand. */
function orLast(found: Outcome<Data>, before: Data | null): Data | null {
  return found.ok ? found.data : isUnanswered(found) ? before : null;
}

/** Asks for what the address names. */
export function ask(): Promise<void> {
  const wanted = by.peek();
  return shown.run(async (signal, before) => {
    const get = (parameters: Record<string, string>) =>
      api<Data>('status/lateness', { span: span.peek(), limit: ROWS, ...parameters }, { signal });
    const [all, named] = await Promise.all([
      get({ by: 'protocol', protocol: protocol.peek() }),
      wanted === 'protocol' ? null : get({ by: wanted }),
    ]);
    const listed = named ?? all;
    return {
      totals: orLast(all, before.totals), rows: orLast(listed, before.rows),
      failure: all.ok ? null : all, rowsFailure: listed.ok ? null : listed,
    };
  });
}
