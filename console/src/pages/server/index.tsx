// The Server page: what somebody on call wants in one look. In the address: `refresh`, a duration
// or `off`; without it every two seconds.

import { useEffect } from 'preact/hooks';
import { isUnanswered } from '../../ask';
import { StateCard, type Kind } from '../../components/state';
import { useWatch, WatchHead } from '../../components/watch';
import { secondText } from '../../clock';
import { bytes, count } from '../../format';
import { matters } from './attention';
import { Cards } from './cards';
import { Charts } from './charts';
import { note, past, type Status } from './status';
import './server.css';

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
  const watch = useWatch();
  const { data, failure } = watch;
  useEffect(() => { if (data !== null) note(data); }, [data]);
  const seen = past.value;
  const status = seen.at(-1);
  return (
    <div class="page server">
      <WatchHead title="Server" watch={watch} seen_ms={status?.server.time_ms ?? null} away="Check that it runs; this page goes on by itself." />
      {status && <State seen={seen} isAway={isUnanswered(failure)} />}
      {status && <Charts />}
      {status && <Cards status={status} />}
    </div>
  );
}
