// The Explain page: what the parts of a PromQL expression gave and took, and what matched what.

import { useEffect, useLayoutEffect, useMemo, useState } from 'preact/hooks';
import { nextAsk, useRefresh, useRuns } from '../../ask';
import { Broken, broken, brokenIn, RANGE, wordOf, type Check } from '../../components/broken';
import { Editor } from '../../components/editor';
import { Busy, Empty, FailureLine } from '../../components/notice';
import { StepInput } from '../../components/step';
import { TimePicker } from '../../components/timepicker';
import { href, params, setParams } from '../../route';
import { noteQuery } from '../query/history';
import { sameTime, stepProblem } from '../query/state';
import { chosen, forget, isNumber } from './chosen';
import { Detail } from './detail';
import { emptiness } from './empty';
import { hint } from './hints';
import { Heads, Sum } from './heads';
import { nodeAt, spanIn, type Explanation } from './nodes';
import { answer, cancel, explain, isInstant, isRunning, leave, run, setText, text } from './run';
import { Tree } from './tree';
import './explain.css';

/** Whether a text is a node of the explanation, or may be one while there is none. */
function isNode(id: string): boolean {
  const shown = answer.value;
  return isNumber(id) && (!shown?.data || shown.text !== text.value || Number(id) < shown.data.nodes.length);
}

const CHECKS: Check[] = [
  ...RANGE, stepProblem, wordOf('instant', ['0', '1'], 'each step of the range is explained'),
  () => broken('node', isNode, 'a node of the explanation', 'the page chooses one'),
  () => broken('depth', isNumber, 'a number of levels', 'all are open'),
  () => brokenIn('fold', isNode, 'a node of the explanation', 'it opens and closes nothing'),
];

/** What an answer depends on. */
function request(): string {
  const { value } = params;
  return JSON.stringify(['q', 'instant', 'step', 'range', 'from', 'to'].map((name) => value.getAll(name)));
}

function Bar({ draft, onRun }: { draft: string; onRun: () => void }) {
  const kind = (title: string, isOn: boolean, instant: string | null, about: string) => (
    <button type="button" aria-pressed={isOn} class="toggle" title={about} onClick={() => setParams({ instant })}>{title}</button>
  );
  return (
    <div class="bar">
      <TimePicker />
      <div class="group" role="group" aria-label="Kind of query">
        {kind('Range', !isInstant.value, null, 'At each step of the time range')}
        {kind('Instant', isInstant.value, '1', 'At the end of the time range')}
      </div>
      {!isInstant.value && <StepInput used_ms={run.value?.isRange ? run.value.step_ms : null} />}
      <span class="gap" />
      <a class="button" href={href('query', sameTime({ q: draft, view: isInstant.value ? 'table' : '' }))}>Open in Query</a>
      {isRunning.value
        ? <button type="button" class="run" onClick={cancel}>Cancel</button>
        : <button type="button" class="run primary" onClick={onRun} title="Enter in the expression">Explain</button>}
    </div>
  );
}

function Explained({ query, data }: { query: string; data: Explanation }) {
  const { nodes } = data;
  const empty = useMemo(() => emptiness(nodes), [nodes]);
  const about = useMemo(() => data.annotations.map((one) => nodeAt(nodes, one.start, one.end)?.id ?? 0), [data]);
  const marked = useMemo(() => new Set(about), [about]);
  const node = nodes[chosen.value ?? -1] ?? empty?.node ?? nodes[0];
  if (!node) return <Empty title="No nodes"><p>The server explains nothing of this query.</p></Empty>;
  return (
    <>
      <Heads data={data} empty={empty} about={about} />
      <Tree nodes={nodes} chosen={node.id} marked={marked} />
      <Detail query={query} nodes={nodes} node={node} annotations={data.annotations.filter((_, at) => about[at] === node.id)} />
    </>
  );
}

function Answer() {
  const shown = answer.value;
  if (text.value.trim() === '') {
    return (
      <Empty title="No query yet">
        <p>Type an expression above, or follow <em>Explain</em> beside a query of the <a href={href('query')}>Query</a> page. Enter evaluates it and shows what each part did.</p>
      </Empty>
    );
  }
  if (shown?.data && shown.text === text.value) return <Explained query={shown.text} data={shown.data} />;
  if (!isRunning.value && shown?.failure) {
    return shown.failure.kind === 'canceled'
      ? <Empty title="Cancelled"><button type="button" onClick={() => void explain()}>Explain again</button></Empty>
      : <Empty title="No explanation"><p>What is wrong stands below the expression.</p></Empty>;
  }
  return <div class="waiting" />;
}

/** The part of the text that the chosen node is. */
function markOf(draft: string): { from: number; to: number } | null {
  const shown = answer.value;
  if (!shown?.data || shown.text !== draft) return null;
  const { nodes } = shown.data;
  const node = nodes[chosen.value ?? -1] ?? emptiness(nodes)?.node;
  return node && node.id > 0 ? spanIn(draft, node) : null;
}

export function ExplainPage() {
  useRuns('explain', request, () => void explain(), leave);
  useRefresh(nextAsk(null, answer.value?.failure), isRunning.value, () => void explain());
  useEffect(() => forget, []);
  const [draft, setDraft] = useState(text.value);
  useLayoutEffect(() => setDraft(text.value), [text.value]);
  const start = () => {
    noteQuery(draft);
    if (draft === text.peek()) void explain();
    else setText(draft);
  };
  const shown = answer.value;
  const failure = shown?.text === text.value ? shown.failure : null;
  return (
    <div class="page explain-page">
      <h1 class="hidden">Explain</h1>
      <Bar draft={draft} onRun={start} />
      <Broken checks={CHECKS} />
      <div class="query">
        <div class="line">
          <Editor label="Expression" text={text.value} revision={0} onText={setDraft} onRun={start} mark={markOf(draft)} />
        </div>
        <div class="said">
          {failure && <FailureLine failure={failure} />}
          {failure && hint(failure) && <p class="hint">{hint(failure)}</p>}
          {(!failure || shown?.data) && <Sum data={shown?.text === text.value ? shown.data : null} />}
        </div>
      </div>
      <section class="card explained" aria-label="Explanation">
        <Busy on={isRunning.value} />
        <Answer />
      </section>
    </div>
  );
}
