// The head of a page that looks at the server again and again. In the address: `refresh`, a duration
// or `off`; without it every two seconds.

import { useAnswer } from '../ask';
import { parseDuration, secondText } from '../clock';
import { params } from '../route';
import { Broken, refreshOf } from './broken';
import { RefreshChoice } from './choice';
import { Busy, ErrorBox } from './notice';

const LEAST_MS = 1000;
const CHECKS = [refreshOf('it refreshes every 2s')];

/** What the server says of itself, and the head of the page that shows it. */
export function useWatch() {
  const chosen = params.value.get('refresh') ?? '2s';
  const every_ms = chosen === 'off' ? undefined : Math.max(LEAST_MS, parseDuration(chosen) ?? 2000);
  return { ...useAnswer<unknown>('status/server', {}, every_ms), every_ms };
}

interface Props {
  title: string;
  watch: ReturnType<typeof useWatch>;
  /** When what is shown was true; null before there is something. */
  seen_ms: number | null;
  /** What to do where the server does not answer. */
  away: string;
}

export function WatchHead({ title, watch: { every_ms, failure, isRunning, again }, seen_ms, away }: Props) {
  return (
    <>
      <div class="bar">
        <h1>{title}</h1>
        <span class="gap" />
        <span class="hint">{seen_ms !== null && `as of ${secondText(seen_ms)}`}</span>
        <RefreshChoice initial="2s" />
        {every_ms === undefined && <button type="button" onClick={again}>Look again</button>}
      </div>
      <Broken checks={CHECKS} />
      {failure && (
        <ErrorBox failure={failure} retry={again}>
          {failure.status === 403 && <p>This page needs a user with permission for the command INFO.</p>}
          {failure.status === 0 && <p>{seen_ms !== null ? 'Below is what it said last. ' : ''}{away}</p>}
        </ErrorBox>
      )}
      {seen_ms === null && !failure && <section class="card state"><Busy on={isRunning} /></section>}
    </>
  );
}
