// What matched what in an operation of two vectors, and what to do where nothing did.

import { count, labelText, seriesText } from '../../format';
import { href, params } from '../../route';
import { differences, suggestion, type Difference, type Suggestion, type Verdict } from './advice';
import { reveal } from './chosen';
import { spanIn, type Example, type Matching, type Node, type Side } from './nodes';
import { modifiers, rewritten } from './rewrite';

const VALUES_MAX = 3;
const VERDICTS: Record<Verdict, string> = {
  same: 'has common values', 'only left': 'on the left only', 'only right': 'on the right only', different: 'no value in common',
};

function exampleText({ labels, labelsOmitted }: Example): string {
  return `${seriesText(labels)}${labelsOmitted > 0 ? ` and ${count(labelsOmitted)} more labels` : ''}`;
}

/** What is compared, in words. */
function rule({ on, labels, card, include, fillLeft, fillRight }: Matching): string {
  const names = labels.map(labelText).join(', ');
  const compared = on
    ? (labels.length > 0 ? `Series match when they have the same ${names}` : 'All series match each other, as on() names no label')
    : `Series match when all their labels${labels.length > 0 ? ` but ${names}` : ''} are the same`;
  const taken = include.length > 0 ? `; ${include.map(labelText).join(', ')} is taken from the other side` : '';
  const filled = fillLeft != null || fillRight != null ? '; what has no partner is filled' : '';
  return `${compared}, ${card}${taken}${filled}.`;
}

function Values({ values }: { values: string[] }) {
  if (values.length === 0) return <span class="hint">none</span>;
  const more = values.length - VALUES_MAX;
  return <><code>{values.slice(0, VALUES_MAX).map((value) => JSON.stringify(value)).join(', ')}</code>{more > 0 && <span class="hint"> and {more} more</span>}</>;
}

function Differences({ rows }: { rows: Difference[] }) {
  return (
    <div class="differences" tabIndex={0} role="region" aria-label="Labels of both sides">
      <table>
        <thead><tr><th scope="col">Label</th><th scope="col">Left</th><th scope="col">Right</th><th scope="col">In the examples</th></tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.label} class={row.isCompared && row.verdict !== 'same' ? 'apart' : ''}>
              <th scope="row"><code>{row.label}</code></th>
              <td><Values values={row.left} /></td>
              <td><Values values={row.right} /></td>
              <td>{VERDICTS[row.verdict]}{row.isCompared ? '' : ', not compared'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What the suggestion does, in words. */
function inWords({ on, group, renamed, isAggregated }: Suggestion): string {
  const names = on.join(', ');
  if (on.length === 0) return 'One side is a single series without labels: on () lets it match all of the other side.';
  const says = [renamed === null
    ? `Both sides have ${names} with the same values: compare only that.`
    : `The values of ${names} on the left are those of ${renamed} on the right: label_replace() gives the right side ${names} as well.`];
  if (isAggregated) says.push(`Both sides have several series with the same ${names}: one must be aggregated; the sum is an example.`);
  else if (group !== null) says.push(`The ${group === 'group_left' ? 'left' : 'right'} side has several series with the same ${names}, so it needs ${group}.`);
  return says.join(' ');
}

/** Queries with which series would match. */
function Suggestions({ query, node, matching, suggested }: { query: string; node: Node; matching: Matching; suggested: Suggestion }) {
  const { from, to } = spanIn(query, node);
  const ways = suggested.renamed === null && suggested.on.length > 0 && suggested.ignoring.length > 0 && !suggested.isAggregated ? ['on', 'ignoring'] as const : ['on'] as const;
  return (
    <div class="suggestions">
      <p>{inWords(suggested)}</p>
      <ul>
        {ways.map((by) => {
          const next = rewritten(query, from, to, suggested, matching, by);
          const shown = modifiers(suggested, matching, by);
          if (next === null) return <li key={by}><code>{shown}</code></li>;
          const values = new URLSearchParams(params.value);
          for (const name of ['node', 'fold', 'depth']) values.delete(name);
          values.set('q', next);
          return <li key={by}><a href={href('explain', values)} title="Explain this query"><code>{next}</code></a></li>;
        })}
      </ul>
      <p class="hint">Judged by at most 10 series of each side.</p>
    </div>
  );
}

/** Why nothing matched. */
function Advice({ query, nodes, node, matching, sides }: { query: string; nodes: Node[]; node: Node; matching: Matching; sides: (number | undefined)[] }) {
  const empty = matching.left.series === 0 ? 0 : matching.right.series === 0 ? 1 : null;
  if (empty !== null) {
    const side = sides[empty];
    return (
      <p class="why">
        The {empty === 0 ? 'left' : 'right'} side has no series, so nothing can match.
        {side !== undefined && <> <button type="button" onClick={() => reveal(nodes, side)}>Show the {empty === 0 ? 'left' : 'right'} side</button></>}
      </p>
    );
  }
  if (node.name === 'or') return <p>No series of the right side matches one of the left side, so all of both are in the result.</p>;
  const rows = differences(matching);
  const apart = rows.filter((row) => row.isCompared && row.verdict !== 'same');
  const suggested = suggestion(node.name, matching);
  return (
    <div class="advice">
      <h3>Why nothing matches</h3>
      {apart.length > 0
        ? <p>Labels that must be the same, and are not: {apart.map((row, at) => <>{at > 0 && ', '}<code>{row.label}</code> ({VERDICTS[row.verdict]})</>)}.</p>
        : <p>Each label has common values, but no series of one side has all the values of one on the other.</p>}
      {matching.examplesOmitted || rows.length === 0 ? <p class="hint">The examples of the series are left out or have no labels.</p> : <Differences rows={rows} />}
      {suggested
        ? <Suggestions query={query} node={node} matching={matching} suggested={suggested} />
        : <p>No label has the same value on both sides of these examples. Aggregate both sides to labels that they share, or derive a common label with label_replace().</p>}
    </div>
  );
}

function SideView({ title, side }: { title: string; side: Side }) {
  return (
    <div class="side">
      <h3>{title}</h3>
      <p>{count(side.series)} series: {count(side.matched)} matched, {count(side.unmatched)} unmatched</p>
      {side.examples.length > 0 && (
        <>
          <p class="hint">Without a partner{side.unmatched > side.examples.length ? `, the first ${side.examples.length}` : ''}:</p>
          <ul class="examples">{side.examples.map((example, at) => <li key={at}><code>{exampleText(example)}</code></li>)}</ul>
        </>
      )}
    </div>
  );
}

interface Properties {
  query: string;
  nodes: Node[];
  node: Node;
  matching: Matching;
  left: number | undefined;
  right: number | undefined;
}

export function MatchingView({ query, nodes, node, matching, left, right }: Properties) {
  return (
    <section class="matching" aria-labelledby="matching">
      <h2 id="matching">Matching</h2>
      <p>{rule(matching)}</p>
      {matching.pairs === 0 && <Advice query={query} nodes={nodes} node={node} matching={matching} sides={[left, right]} />}
      <div class="sides">
        <SideView title="Left" side={matching.left} />
        <SideView title="Right" side={matching.right} />
      </div>
      {matching.examples.length > 0 && (
        <div class="pairs">
          <h3>{count(matching.pairs)} {matching.pairs === 1 ? 'pair' : 'pairs'}</h3>
          {matching.pairs > matching.examples.length && <p class="hint">The first {matching.examples.length}:</p>}
          <ul class="examples">
            {matching.examples.map((pair, at) => <li key={at}><code>{exampleText(pair.left)}</code> <b>{node.name}</b> <code>{exampleText(pair.right)}</code></li>)}
          </ul>
        </div>
      )}
      {matching.examplesOmitted && <p class="hint">Some examples are left out, as those of all operations are too long.</p>}
    </section>
  );
}
