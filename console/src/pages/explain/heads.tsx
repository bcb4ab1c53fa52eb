// What holds for the whole query: its figures, why it has no result, and remarks.

import { Remarks } from '../../components/notice';
import { selectorsOf } from '../../components/selectors';
import { Stored } from '../../components/stored';
import { secondText } from '../../clock';
import { bytes, count, took } from '../../format';
import { reveal, setDepth } from './chosen';
import { isSelector } from './empty';
import { slowest, type Explanation, type Node } from './nodes';
import { run } from './run';

/** The figures of the query in a line; it keeps its place while there are none. */
export function Sum({ data }: { data: Explanation | null }) {
  if (!data) return <p class="figures">{'\u00a0'}</p>;
  const { stats } = data;
  const parts = [
    `evaluated in ${took(data.evaluationMs)}`,
    data.range ? `${count(data.steps)} steps` : `at ${secondText(data.start * 1000)}`,
    `${count(stats.series)} series with ${count(stats.samples)} samples`,
    `${count(stats.seriesRead)} series read`,
    `${count(stats.samplesRead)} samples read`,
    `${count(stats.lateSamplesMerged)} late merged`,
    `peak memory ${bytes(stats.peakBytes)}`,
  ];
  return <p class="figures">{parts.map((part) => <span key={part}>{part}</span>)}</p>;
}

interface Properties {
  data: Explanation;
  empty: { node: Node; why: string } | null;
  /** The nodes that the annotations are about. */
  about: number[];
}

export function Heads({ data, empty, about }: Properties) {
  const { nodes, nodesOmitted } = data;
  const most = slowest(nodes);
  return (
    <>
      {empty && (
        <div class="why">
          <p>
            <strong>No result.</strong> {empty.why}{' '}
            <button type="button" onClick={() => reveal(nodes, empty.node.id)}><code>{empty.node.text}</code></button>
          </p>
          {isSelector(empty.node) && (empty.node.seriesRead ?? 0) > 0 && <Stored selectors={selectorsOf(empty.node.text)} shown={run.value?.span ?? null} />}
        </div>
      )}
      <Remarks all={data.annotations} tool={(at) => <button type="button" class="quiet" onClick={() => reveal(nodes, about[at]!)}>Show</button>} />
      <div class="tabs">
        <h2>{count(nodes.length)} {nodes.length === 1 ? 'node' : 'nodes'}</h2>
        {nodesOmitted > 0 && <span class="hint">{count(nodesOmitted)} deeper ones are left out</span>}
        <span class="gap" />
        {most && nodes.length > 1 && <button type="button" class="toggle" onClick={() => reveal(nodes, most.id)} title="The node that took most time by itself">Slowest</button>}
        <button type="button" class="toggle" onClick={() => setDepth(null)}>Expand all</button>
        <button type="button" class="toggle" onClick={() => setDepth(1)}>Collapse all</button>
      </div>
    </>
  );
}
