// The queries that run, the oldest first. The first click of a button asks, the second cancels.

import { useEffect, useState } from 'preact/hooks';
import { api } from '../../api';
import type { Answered } from '../../ask';
import { ErrorBox } from '../../components/notice';
import { clockText, durationText, secondText, timeText } from '../../clock';
import { count, took } from '../../format';
import { QueryLink } from './link';

/** A query of `status/active_queries`; times are in seconds. */
export interface RunningQuery {
  id: string;
  user: string;
  query: string;
  start: number;
  end: number;
  step: number;
  startedAt: number;
  durationSeconds: number;
  canceled: boolean;
}

const ASKED_MS = 5000;

const ms = (seconds: number) => Math.round(seconds * 1000);

/** What the Query page shows of the same. */
function place({ start, end, step }: RunningQuery): Record<string, string> {
  if (start === end) return { from: String(ms(end) - 3_600_000), to: String(ms(end)), view: 'table' };
  return { from: String(ms(start)), to: String(ms(end)), step: durationText(ms(step)) };
}

function spanText({ start, end, step }: RunningQuery): string {
  if (start === end) return `at ${timeText(ms(end))}`;
  return `${durationText(ms(end) - ms(start))}, ${timeText(ms(start))} to ${timeText(ms(end))}, step ${durationText(ms(step))}`;
}

function CancelButton({ query, said }: { query: RunningQuery; said: (text: string) => void }) {
  const [isAsked, setAsked] = useState(false);
  const [isSent, setSent] = useState(false);
  useEffect(() => {
    if (!isAsked) return;
    const timer = setTimeout(() => setAsked(false), ASKED_MS);
    return () => clearTimeout(timer);
  }, [isAsked]);
  const click = async (event: MouseEvent) => {
    if (!isAsked) { setAsked(true); return; }
    // The second half of a double click is no answer.
    if (event.detail > 1) return;
    setAsked(false);
    setSent(true);
    const outcome = await api(`status/active_queries/${encodeURIComponent(query.id)}/cancel`, {}, { method: 'POST' });
    setSent(false);
    said(outcome.ok ? `Query ${query.id} is cancelled.` : `Query ${query.id}: ${outcome.text}`);
  };
  const text = query.canceled || isSent ? 'Cancelling' : isAsked ? 'Yes, cancel' : 'Cancel';
  return (
    <button type="button" class={isAsked ? 'cancel danger' : 'cancel'} disabled={query.canceled || isSent} onClick={(event) => void click(event)}
      onBlur={() => setAsked(false)} onKeyDown={(event) => { if (event.key === 'Escape') setAsked(false); }}
      aria-label={`${text} query ${query.id}`}>{text}</button>
  );
}

function Row({ query, said }: { query: RunningQuery; said: (text: string) => void }) {
  const began_ms = ms(query.startedAt);
  return (
    <li>
      <div class="what">
        <QueryLink text={query.query} at={place(query)} />
        <p class="figures">
          <strong>{took(query.durationSeconds * 1000)}</strong>
          <span title={secondText(began_ms)}>since {clockText(began_ms)}</span>
          <span>user {query.user}</span>
          <span>{spanText(query)}</span>
        </p>
      </div>
      <CancelButton query={query} said={said} />
    </li>
  );
}

export function Running({ answered: { data, at_ms, failure, again } }: { answered: Answered<RunningQuery[]> }) {
  const [said, setSaid] = useState('');
  const tell = (text: string) => {
    setSaid(text);
    again();
  };
  return (
    <section class="card" aria-labelledby="running">
      <div class="bar">
        <h2 id="running">Running</h2>
        <span class="hint count">{data && count(data.length)}</span>
        <span class="gap" />
        <span class="hint" role="status">{said}</span>
        <span class="hint at">{at_ms > 0 && `as of ${clockText(at_ms)}`}</span>
      </div>
      {failure && <ErrorBox failure={failure} retry={again} />}
      <ul class="running" tabIndex={0} aria-labelledby="running">
        {data?.map((query) => <Row key={query.id} query={query} said={tell} />)}
        {data?.length === 0 && <li class="hint">No query runs at the moment. This list is asked for every 2 seconds.</li>}
      </ul>
    </section>
  );
}
