// The Queries page: what runs at the moment, and what took most. In the address:
//   by   `count`, `average` or `sum`: what the list of ended queries is sorted by
//   top  its length

import { useAnswer } from '../../ask';
import { Broken, wordOf } from '../../components/broken';
import { Choice } from '../../components/choice';
import { ErrorBox } from '../../components/notice';
import { TabPanel, Tabs } from '../../components/tabs';
import { params } from '../../route';
import { Ended, type Ranking, type Top } from './ended';
import { Running, type RunningQuery } from './running';
import './queries.css';

const EVERY_MS = 2000;
const LENGTHS = ['10', '20', '50', '100', '1000'];
const RANKINGS: [Ranking, string][] = [['average', 'Slowest'], ['count', 'Most often'], ['sum', 'Longest in all']];

const CHECKS = [wordOf('by', RANKINGS.map(([name]) => name), 'the slowest are listed')];

function ranking(): Ranking {
  const by = params.value.get('by');
  return by === 'count' || by === 'sum' ? by : 'average';
}

function EndedSection() {
  const top = params.value.get('top') ?? '20';
  const by = ranking();
  const { data, failure, again } = useAnswer<Top>('status/top_queries', { topN: top }, EVERY_MS);
  return (
    <section class="card ended" aria-labelledby="ended">
      <div class="tabs">
        <h2 id="ended">Ended</h2>
        <Tabs label="Order" param="by" tabs={RANKINGS} chosen={by} />
        <span class="gap" />
        <Choice label="Show" param="top" values={LENGTHS} initial="20" />
      </div>
      {failure && <ErrorBox failure={failure} retry={again} />}
      <TabPanel param="by" chosen={by}>{data && <Ended top={data} by={by} />}</TabPanel>
    </section>
  );
}

export function QueriesPage() {
  const running = useAnswer<RunningQuery[]>('status/active_queries', {}, EVERY_MS);
  return (
    <div class="page queries-page">
      <h1 class="hidden">Queries</h1>
      <Broken checks={CHECKS} />
      <Running answered={running} />
      <EndedSection />
    </div>
  );
}
