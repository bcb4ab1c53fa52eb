// The Cardinality page: which metrics and labels the series come from. In the address:
//   match  a selector: only series that match are counted
//   focus  a label whose values are counted
//   top    the length of each list
//   idle   as in idle.tsx

import { useMemo, useState } from 'preact/hooks';
import { isUnanswered, useAnswer } from '../../ask';
import { Broken, durationOf } from '../../components/broken';
import { Choice } from '../../components/choice';
import { useBox } from '../../components/draft';
import { FigureList } from '../../components/figures';
import { Busy, Empty, ErrorBox, NoSeries } from '../../components/notice';
import { labelNames } from '../../components/names';
import { timeText, zone } from '../../clock';
import { count, UNKNOWN } from '../../format';
import { params, setParams } from '../../route';
import { Filter } from './filter';
import { idleSince } from './idle';
import type { Tsdb } from './list';
import { Lists } from './lists';
import './cardinality.css';

const CHECKS = [durationOf('idle', 'series without samples since today, 00:00 are listed')];
const LENGTHS = ['10', '20', '50', '100', '1000'];

function Heads({ data }: { data: Tsdb | null }) {
  const head = data?.headStats;
  const isEmpty = !head || head.minTime > head.maxTime;
  return (
    <FigureList kind="heads" all={[
      ['Series', count(head?.numSeries ?? NaN)],
      ['Pairs of label and value', count(head?.numLabelPairs ?? NaN)],
      ['Chunks in memory', count(head?.chunkCount ?? NaN)],
      ['Oldest sample', isEmpty ? UNKNOWN : timeText(head.minTime)],
      ['Newest sample', isEmpty ? UNKNOWN : timeText(head.maxTime)],
    ]} />
  );
}

function Bar({ focus, again }: { focus: string; again: () => void }) {
  const [labels, setLabels] = useState<string[]>([]);
  const complete = () => void labelNames().then(setLabels);
  return (
    <div class="bar">
      <label class="inline">Values of label
        <input ref={useBox(focus)} list="labels" defaultValue={focus} placeholder="none" onFocus={complete} autocomplete="off"
          onChange={(event) => setParams({ focus: event.currentTarget.value.trim() || null })} />
        <datalist id="labels">{labels.map((one) => <option key={one} value={one} />)}</datalist>
      </label>
      <Choice label="Rows" param="top" values={LENGTHS} initial="10" />
      <span class="gap" />
      <button type="button" onClick={again}>Count again</button>
    </div>
  );
}

function Nothing({ filter }: { filter: string }) {
  if (filter !== '') {
    return (
      <Empty title="No series match">
        <p>Nothing is named so, or you may not read it.</p>
        <button type="button" onClick={() => setParams({ match: null })}>Count all series</button>
      </Empty>
    );
  }
  return <NoSeries then="count again" />;
}

export function CardinalityPage() {
  const filter = params.value.get('match') ?? '';
  const focus = params.value.get('focus') ?? '';
  const top = params.value.get('top') ?? '10';
  const idle = params.value.get('idle');
  const [turn, setTurn] = useState(0);
  // One moment for one question: a later one would ask again.
  const since = useMemo(idleSince, [filter, focus, top, idle, zone.value, turn]);
  const { data, failure, isRunning, again } = useAnswer<Tsdb>('status/tsdb', { 'match[]': filter, focusLabel: focus, topN: top, idleSince: since / 1000 });
  const shown = failure && !isUnanswered(failure) ? null : data;
  const countAgain = () => (idleSince() === since ? again() : setTurn(turn + 1));
  return (
    <div class="page cardinality">
      <h1 class="hidden">Cardinality</h1>
      <Filter filter={filter} total={isRunning ? null : shown?.totalSeries ?? null} />
      <Bar focus={focus} again={countAgain} />
      <Broken checks={CHECKS} />
      <section class="card" aria-label="Heads">
        <Busy on={isRunning} />
        <Heads data={shown} />
      </section>
      {failure && <ErrorBox failure={failure} retry={countAgain} />}
      {shown?.totalSeries === 0 && <Nothing filter={filter} />}
      {shown !== null && shown.totalSeries > 0 && <Lists data={shown} filter={filter} focus={focus} />}
    </div>
  );
}
