// The Server page: what somebody on call wants in one look. In the address: `refresh`, a duration
// or `off`; without it every two seconds.

import { ErrorBox } from '../../components/notice';
import { usePolling } from '../../components/polling';
import { parseDuration, secondText } from '../../clock';
import { bytes, count } from '../../format';
import { params, setParams } from '../../route';
import { matters } from './attention';
import { Cards } from './cards';
import { Charts } from './charts';
import { failure, latest, look, type Status } from './status';
import './server.css';

const REFRESHES = ['off', '2s', '5s', '10s', '30s'];
const LEAST_MS = 1000;

function word({ state }: Status): [text: string, kind: string] {
  if (state.writes_stopped !== null) return ['Writes stopped', 'bad'];
  if (state.loading !== null) return [`Loading: ${Math.floor(state.loading.percent)}%`, 'busy'];
  if (!state.ready) return ['Not ready', 'bad'];
  return state.out_of_memory ? ['Out of memory', 'bad'] : ['Ready', 'good'];
}

function Loading({ loading }: { loading: NonNullable<Status['state']['loading']> }) {
  return <p>{bytes(loading.bytes_done)} of {bytes(loading.bytes_total)} are loaded, {count(loading.eta_seconds)} s to go</p>;
}

function State({ status }: { status: Status }) {
  const [text, kind] = word(status);
  const found = matters(status);
  return (
    <section class={`card state ${kind}`} aria-label="State">
      <p class="word" role="status"><span class="lamp" aria-hidden="true">{kind === 'good' ? '✓' : kind === 'busy' ? '…' : '!'}</span>{text}</p>
      <div>
        {status.state.loading && <Loading loading={status.state.loading} />}
        {found.length === 0 && kind === 'good' && <p class="hint">Nothing needs attention.</p>}
        <ul class="matters">{found.map((one) => <li key={one.text} class={one.isError ? 'bad' : 'warn'}>{one.text}</li>)}</ul>
      </div>
    </section>
  );
}

export function ServerPage() {
  const chosen = params.value.get('refresh') ?? '2s';
  const every_ms = chosen === 'off' ? null : Math.max(LEAST_MS, parseDuration(chosen) ?? 2000);
  usePolling(look, every_ms);
  const status = latest.value;
  const wrong = failure.value;
  return (
    <div class="page server">
      <div class="bar">
        <h1>Server</h1>
        <span class="gap" />
        {status && <span class="hint">{secondText(status.server.time_ms)}</span>}
        <label class="inline">Refresh
          <select value={chosen} onChange={(event) => setParams({ refresh: event.currentTarget.value === '2s' ? null : event.currentTarget.value }, true)}>
            {[...new Set([...REFRESHES, chosen])].map((one) => <option key={one} value={one}>{one}</option>)}
          </select>
        </label>
      </div>
      {wrong && (
        <ErrorBox failure={wrong} retry={() => void look(new AbortController().signal)}>
          {wrong.status === 403 && <p>This page needs a user with permission for the command INFO.</p>}
          {wrong.status === 0 && <p>{status ? 'Below is what it said last. ' : ''}Check that it runs; this page goes on by itself.</p>}
        </ErrorBox>
      )}
      {status && <State status={status} />}
      {status && <Charts />}
      {status && <Cards status={status} />}
    </div>
  );
}
