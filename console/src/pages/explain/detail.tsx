// All that is known of one node.

import { FigureList, type Figure } from '../../components/figures';
import { Remarks } from '../../components/notice';
import { bytes, count } from '../../format';
import { MatchingView } from './matching';
import { kindText, seriesIn, share, spanIn, timeOf, type Annotation, type Node } from './nodes';

/** Whether what was evaluated is what is written, but for spaces; of a long text the beginning is known. */
function isAsWritten(written: string, evaluated: string): boolean {
  const squeeze = (text: string) => text.replace(/\s/g, '');
  const [a, b] = [squeeze(written), squeeze(evaluated)];
  return a === b || (b.endsWith('...') && a.startsWith(b.slice(0, -3)));
}

function percent(part: number): string {
  return `${(part * 100).toFixed(part > 0 && part < 0.1 ? 1 : 0)} %`;
}

function Figures({ nodes, node }: { nodes: Node[]; node: Node }) {
  const of = (value: number | undefined) => count(value ?? 0);
  const all: Figure[] = [
    ['Type', node.type],
    ['Series in', of(seriesIn(nodes, node))],
    ['Series out', of(node.series)],
    ['Series that it could give', of(node.seriesKnown)],
    ['Series evaluated', of(node.seriesEvaluated)],
    ['Columns', of(node.columns)],
    ['Steps', of(node.steps)],
    ['Samples out', of(node.samples)],
    ['Series read', of(node.seriesRead)],
    ['Samples read', of(node.samplesRead)],
    ['Late samples merged', of(node.lateSamplesMerged)],
    ['Own time', `${timeOf(node.ownMs ?? 0)} (${percent(share(nodes, node.ownMs))})`],
    ['Total time', `${timeOf(node.totalMs)} (${percent(share(nodes, node.totalMs))})`],
    ['Peak memory', bytes(node.peakBytes ?? 0)],
  ];
  return <FigureList kind="node-figures" all={all} />;
}

interface Properties {
  query: string;
  nodes: Node[];
  node: Node;
  annotations: Annotation[];
}

export function Detail({ query, nodes, node, annotations }: Properties) {
  const { from, to } = spanIn(query, node);
  const written = query.slice(from, to);
  const [left, right] = node.children;
  return (
    <section class="card detail" aria-label="Chosen node">
      <h2>{kindText(node)} {node.kind !== 'selector' && node.kind !== 'range_selector' && node.name}</h2>
      <pre class="written" tabIndex={0}>{written}</pre>
      {!isAsWritten(written, node.text) && <p class="hint">Evaluated as <code>{node.text}</code></p>}
      {node.notes.length > 0 && <ul class="notes">{node.notes.map((note) => <li key={note}>{note}</li>)}</ul>}
      <Remarks all={annotations} />
      {node.childrenOmitted > 0 && <p class="hint">{count(node.childrenOmitted)} of its parts are left out: an explanation shows at most 2,000 nodes.</p>}
      {node.evaluated ? <Figures nodes={nodes} node={node} /> : <p class="hint">It was not evaluated by itself.</p>}
      {node.matching && <MatchingView query={query} nodes={nodes} node={node} matching={node.matching} left={left} right={right} />}
    </section>
  );
}
