// The Server page: what somebody on call wants in one look. In the address: `refresh`, a duration
// or `off`; without it every two seconds.

import { useEffect } from 'preact/hooks';
import { isUnanswered, useAnswer } from '../../ask';
import { Broken, refreshOf } from '../../components/broken';
import { RefreshChoice } from '../../components/choice';
import { Busy, ErrorBox } from '../../components/notice';
import { StateCard, type Kind } from '../../components/state';
import { parseDuration, secondText } from '../../clock';
import { bytes, count } from '../../format';
import { params } from '../../route';
import { matters } from './attention';
import { Cards } from './cards';
import { Charts } from './charts';
import { note, past, type Status } from './status';
import './server.css';

const LEAST_MS = 1000;
const CHECKS = [refreshOf('it refreshes every 2s')];

function word({ state }: Status, isAway: boolean): [text: string, kind: Kind] {
  if (isAway) return ['No answer', 'bad'];
  if (state.writes_stopped !== null) return ['Writes stopped', 'bad'];
  if (state.loading !== null) return [`Loading: ${count(Math.floor(state.loading.percent))}%`, 'loading'];
  if (!state.ready) return ['Not ready', 'bad'];
  return state.out_of_memory ? ['Out of memory', 'bad'] : ['Ready', 'good'];
}

function Loading({ loading }: { loading: NonNullable<Status['state']['loading']> }) {
  return <p>{bytes(loading.bytes_done)} of {bytes(loading.bytes_total)} are loaded; {count(loading.eta_seconds)} s to go.</p>;
}

function State({ seen, isAway }: { seen: Status[]; isAway: boolean }) {
  const status = seen.at(-1)!;
  const [text, kind] = word(status, isAway);
  const found = matters(seen);
  return (
    <StateCard word={text} kind={kind} matters={found}>
      {isAway && <p class="hint">It answered last at {secondText(status.server.time_ms)}.{found.length > 0 && ' Then this needed attention:'}</p>}
      {!isAway && status.state.loading && <Loading loading={status.state.loading} />}
    </StateCard>
  );
}

export function ServerPage() {
  const chosen = params.value.get('refresh') ?? '2s';
  const every_ms = chosen === 'off' ? undefined : Math.max(LEAST_MS, parseDuration(chosen) ?? 2000);
  const { data, failure, isRunning, again } = useAnswer<unknown>('status/server', {}, every_ms);
  useEffect(() => { if (data !== null) note(data); }, [data]);
  const seen = past.value;
  const status = seen.at(-1);
  return (
    <div class="page server">
      <div class="bar">
        <h1>Server</h1>
        <span class="gap" />
        <span class="hint">{status && `as of ${secondText(status.server.time_ms)}`}</span>
        <RefreshChoice initial="2s" />
        {every_ms === undefined && <button type="button" onClick={again}>Look again</button>}
      </div>
      <Broken checks={CHECKS} />
      {failure && (
        <ErrorBox failure={failure} retry={again}>
          {failure.status === 403 && <p>This page needs a user with permission for the command INFO.</p>}
          {failure.status === 0 && <p>{status ? 'Below is what it said last. ' : ''}Check that it runs; this page goes on by itself.</p>}
        </ErrorBox>
      )}
      {!status && !failure && <section class="card state"><Busy on={isRunning} /></section>}
      {status && <State seen={seen} isAway={isUnanswered(failure)} />}
      {status && <Charts />}
      {status && <Cards status={status} />}
    </div>
  );
}
