// Where an expression has no result: the selectors that match no series, and the button that leads
// to the time in which the others have samples.

import { useEffect } from 'preact/hooks';
import { api, type Failure, type Outcome } from '../api';
import { isUnanswered, useAsked } from '../ask';
import { secondText } from '../clock';
import { FailureLine } from './notice';
import { setRange, type Span } from './span';

/** Selectors that are asked about. */
const ASKED_MAX = 10;
/** One sample alone is shown with the minute before it. */
const LEAST_MS = 60_000;

interface Found {
  missing: string[];
  /** From the oldest sample to the newest; null without samples. */
  span: Span | null;
}

type Tsdb = { totalSeries: number; headStats: { minTime: number; maxTime: number } };

async function find(selectors: string[], signal: AbortSignal): Promise<Outcome<Found>> {
  const outcomes = await Promise.all(selectors.map((one) => api<Tsdb>('status/tsdb', { 'match[]': one, limit: 1 }, { signal })));
  const failure = outcomes.find((one): one is { ok: false } & Failure => !one.ok);
  if (failure) return failure;
  const answers = outcomes.flatMap((one) => (one.ok ? [one.data] : []));
  const from_ms = Math.min(...answers.map(({ headStats }) => headStats.minTime));
  const to_ms = Math.max(...answers.map(({ headStats }) => headStats.maxTime));
  const missing = selectors.filter((_, at) => answers[at]!.totalSeries === 0);
  const span = from_ms > to_ms ? null : { from_ms: Math.min(from_ms, to_ms - LEAST_MS), to_ms };
  return { ok: true, data: { missing, span }, warnings: [], infos: [], took_ms: 0 };
}

/** `shown` is the time that has no result, another object with each answer. */
export function Stored({ selectors, shown }: { selectors: string[]; shown: Span | null }) {
  const asked = selectors.slice(0, ASKED_MAX);
  const { data, failure, again } = useAsked<Found>((signal) => find(asked, signal), JSON.stringify(asked));
  useEffect(again, [shown]);
  if (failure && (!data || !isUnanswered(failure))) return <FailureLine failure={failure} />;
  if (!data) return null;
  const { missing, span } = data;
  const isAll = span !== null && shown !== null && shown.from_ms <= span.from_ms && span.to_ms <= shown.to_ms;
  return (
    <>
      {missing.length > 0 && <p>No series {missing.length === 1 ? 'matches' : 'match'} {missing.map((one, at) => <span key={one}>{at > 0 && ', '}<code>{one}</code></span>)}.</p>}
      {missing.length < asked.length && span === null && <p>The series have no samples.</p>}
      {span !== null && !isAll && (
        <button type="button" onClick={() => setRange(span)} title={`${secondText(span.from_ms)} to ${secondText(span.to_ms)}`}>Show all the time that has samples</button>
      )}
    </>
  );
}
