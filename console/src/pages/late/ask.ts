// Asks the server how late samples came: the totals and the heat map of the chosen protocol, and
// the rows, which are another request unless they are about protocols. The last answer stays until
// the next one is there, also while the server is away.

import { batch, signal } from '@preact/signals';
import { api, type Failure } from '../../api';
import { by, protocol, span, type By } from './state';

export interface AgesOf { p50: number; p90: number; p99: number; max: number }

export interface Figures {
  lateSamples: number;
  lateAgeMs: AgesOf;
  /** Not of metrics and senders. */
  samples?: number;
  delayMs?: { p99: number; p999: number };
}

export interface Row extends Figures {
  protocol?: string;
  metric?: string;
  sender?: string;
  user?: string;
  /** The row of all others together. */
  isOthers?: boolean;
}

export interface Minute {
  start: number;
  samples: number;
  lateSamples: number;
  /** Powers of two and counts. */
  lateAges: [number, number][];
  /** Bands and counts. */
  arrivalAges: [number, number][];
}

interface Data {
  start: number;
  now: number;
  spanMs: number;
  quantileError: number;
  total: Required<Figures>;
  by: By;
  rowsStart: number;
  rows: Row[];
  others: Figures | null;
  heatMap: { stepMs: number; arrivalAgeBoundsMs: number[]; minutes: Minute[] };
}

/** Totals, minutes and protocols. */
export const totals = signal<Data | null>(null);
/** The rows that were asked for; they say by themselves what they are about. */
export const rows = signal<Data | null>(null);
export const failure = signal<Failure | null>(null);
export const rowsFailure = signal<Failure | null>(null);
export const isAsking = signal(false);

const ROWS = 64;

let controller: AbortController | null = null;

/** Ends what is under way. */
export function cancel(): void {
  controller?.abort();
  controller = null;
  isAsking.value = false;
}

/** Asks for what the address names. */
export async function ask(): Promise<void> {
  cancel();
  const mine = new AbortController();
  controller = mine;
  const wanted = by.peek();
  isAsking.value = true;
  const get = (parameters: Record<string, string>) =>
    api<Data>('status/lateness', { span: span.peek(), limit: ROWS, ...parameters }, { signal: mine.signal });
  const [all, named] = await Promise.all([
    get({ by: 'protocol', protocol: protocol.peek() }),
    wanted === 'protocol' ? null : get({ by: wanted }),
  ]);
  if (mine.signal.aborted) return;
  batch(() => {
    const listed = named ?? all;
    failure.value = all.ok ? null : all;
    rowsFailure.value = listed.ok ? null : listed;
    // What the server refuses leaves nothing; where it is away, its last words stand.
    if (all.ok) totals.value = all.data;
    else if (all.status >= 400) totals.value = null;
    if (listed.ok) rows.value = listed.data;
    else if (listed.status >= 400) rows.value = null;
    isAsking.value = false;
  });
}
