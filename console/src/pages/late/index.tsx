// The Late page: how late samples come, from where, and how long a rule has to wait for them.

import { useEffect } from 'preact/hooks';
import { nextAsk, useRefresh, useRuns } from '../../ask';
import { clockText } from '../../clock';
import { Broken, refreshOf, wordOf } from '../../components/broken';
import { Choice, RefreshChoice } from '../../components/choice';
import { Busy, Empty, ErrorBox } from '../../components/notice';
import { setParams } from '../../route';
import { ask, counted_ms, failure, isAsking, leave, totals } from './ask';
import { Heat } from './heat';
import { Delays } from './delays';
import { History, PAST } from './history';
import { ORDER, Rows } from './rows';
import { by, DEFAULT_REFRESH, DEFAULT_SPAN, minute, protocol, refresh_ms, span, SPANS } from './state';
import { Summary } from './summary';
import { secondsText } from './text';
import { Times } from './times';
import './late.css';

const CHECKS = [
  refreshOf('it does not refresh'), wordOf('by', ['protocol', 'metric', 'sender', 'label'], 'the rows are by protocol'), wordOf('ages', ['late', 'clock'], 'the heat map shows late samples'), PAST, ORDER,
];

function useRequests() {
  useRuns('late', () => [span.value, protocol.value, by.value].join(' '), () => void ask(), leave);
  useEffect(() => () => { minute.value = null; }, []);
  useRefresh(nextAsk(refresh_ms.value, failure.value), isAsking.value, () => void ask());
}

function Bar() {
  const known = totals.value?.rows.flatMap((row) => row.protocol ?? []).sort() ?? [];
  return (
    <div class="bar">
      <Choice label="Last" param="span" values={SPANS} initial={DEFAULT_SPAN} />
      <Choice label="Protocol" param="protocol" values={['', ...known]} initial="" text={(one) => one || 'all'} />
      <RefreshChoice initial={DEFAULT_REFRESH} />
      <span class="gap" />
      {totals.value && <span class="hint">As of {clockText(totals.value.now)}</span>}
      <button type="button" onClick={() => void ask()}>Refresh</button>
    </div>
  );
}

function Meaning() {
  return (
    <p class="meaning">
      A sample is late if it is older than the newest of its series when it arrives; its age is the difference. Latewood stores it like any other.
    </p>
  );
}

/** What is said where no sample, or none late, came. */
function None({ samples }: { samples: number }) {
  const by = protocol.value && ` by ${protocol.value}`;
  const time = counted_ms.value === null ? `in the last ${span.value}` : `since the start of the server, ${secondsText(counted_ms.value)} ago`;
  if (samples === 0) {
    const others = [...(counted_ms.value === null ? ['a longer time'] : []), ...(by ? ['all protocols'] : [])];
    return (
      <Empty title="No sample came">
        <p>No sample arrived {time}{by}. {others.length > 0 ? `Choose ${others.join(' or ')}, or look` : 'Look'} whether the senders run.</p>
        <Meaning />
      </Empty>
    );
  }
  return (
    <Empty title="No sample came late">
      <p>Every sample that arrived {time}{by} was newer than those of its series before it. Rules and alerts need no delay for such senders.</p>
      <Meaning />
    </Empty>
  );
}

function Answer() {
  const data = totals.value;
  if (data === null) return failure.value ? null : <section class="card waiting" aria-busy="true"><Busy on /></section>;
  const { lateSamples, samples } = data.total;
  return (
    <>
      <section class="card" aria-label="In all">
        <Busy on={isAsking.value} />
        <Summary total={data.total} error={data.quantileError} />
        {lateSamples > 0 && <Delays total={data.total} />}
      </section>
      {lateSamples > 0 ? <Times /> : <section class="card"><None samples={samples} /></section>}
      {samples > 0 && <Heat />}
    </>
  );
}

export function LatePage() {
  useRequests();
  return (
    <div class="page late">
      <h1 class="hidden">Late samples</h1>
      <Bar />
      <Broken checks={CHECKS} />
      {failure.value && (
        <ErrorBox failure={failure.value} retry={() => void ask()}>
          {failure.value.status === 404 && <p>This server does not count late samples: a newer version does.</p>}
          {failure.value.status === 400 && <button type="button" onClick={() => setParams({ span: null, protocol: null })}>Show all of the last hour</button>}
        </ErrorBox>
      )}
      <Answer />
      <Rows />
      <History />
    </div>
  );
}
