// What is known of one rule.

import { useEffect, useRef } from 'preact/hooks';
import { timeText } from '../../clock';
import { FigureList, type Figure } from '../../components/figures';
import { count, took, UNKNOWN } from '../../format';
import { href, setParams } from '../../route';
import { seconds, stateText } from './columns';
import { labelsText, msOf, type Rule } from './rule';

const at = (text: string | null, none: string) => {
  const ms = msOf(text);
  return Number.isNaN(ms) ? none : timeText(ms);
};

function evaluation(rule: Rule): Figure[] {
  const labels = labelsText(rule.labels);
  const isAlerting = rule.type === 'alerting';
  return [
    ['state', stateText(rule), rule.health === 'err'],
    ['last run', at(rule.lastEvaluation, 'not yet')],
    ['took, rows', `${took(rule.evaluationTime * 1000)}, ${count(rule.rows)}`],
    ['interval', seconds(rule.group.interval)],
    ['labels', labels || 'none'],
    ...(isAlerting ? [['for, keep firing for', `${seconds(rule.duration)}, ${seconds(rule.keepFiringFor)}`] as Figure] : []),
    ['group, file', `${rule.group.name}, ${rule.group.file}`],
  ];
}

function Corrected({ rule: { corrections: of, type } }: { rule: Rule }) {
  if (of === null) return null;
  if (!of.corrected) {
    const what = type === 'alerting' ? 'Late samples do not change what this alert said' : 'Late samples do not correct the rows of this rule';
    return <section><h3>Corrections</h3><p>{what}: {of.reason || 'the server does not say why'}.</p></section>;
  }
  const dirty = of.pendingSteps > 0 ? `${count(of.pendingSteps)}, ${at(of.pendingFrom, UNKNOWN)} to ${at(of.pendingTo, UNKNOWN)}` : 'not counted yet';
  return (
    <section>
      <h3>Corrections</h3>
      <FigureList kind="facts" all={[
        ['corrected since', at(of.since, UNKNOWN)],
        ['final before', at(of.final, 'nothing is final')],
        ['dirty steps', of.isPending ? <span class="warn">{dirty}</span> : 'none'],
        ['last correction', msOf(of.lastRun) > 0 ? `${at(of.lastRun, UNKNOWN)}, took ${took(of.lastRunSeconds * 1000)}` : 'not since the start of the server'],
        ['rows written, removed', `${count(of.rowsWritten)}, ${count(of.rowsDeleted)}`],
      ]} />
      {of.failure && <p class="error">{of.failure}. It is tried again.</p>}
    </section>
  );
}

function Delay({ rule: { inputDelay: of } }: { rule: Rule }) {
  if (of === null) return null;
  return (
    <section>
      <h3>Delay of its inputs</h3>
      {of.samples > 0 ? (
        <FigureList kind="facts" all={[
          ['50 %, 99 %, 99.9 %', [of.p50, of.p99, of.p999].map(seconds).join(', ')],
          ['samples', count(of.samples)],
          ['query_offset that would have missed 0.1 %', seconds(of.queryOffset)],
        ]} />
      ) : <p class="hint">No sample of its selectors came lately.</p>}
    </section>
  );
}

export function One({ rule }: { rule: Rule }) {
  const button = useRef<HTMLButtonElement>(null);
  // The keys go on here, and then in the table below.
  useEffect(() => button.current?.focus(), [rule.id]);
  const close = () => {
    setParams({ rule: null });
    document.querySelector<HTMLElement>('.rules .table')?.focus();
  };
  return (
    <section class="card one" aria-labelledby="one" onKeyDown={(event) => { if (event.key === 'Escape') close(); }}>
      <div class="row">
        <h2 id="one">{rule.name}</h2>
        <span class="gap" />
        <a class="button" href={href('query', { q: rule.query })}>Query</a>
        <button type="button" ref={button} onClick={close}>Close</button>
      </div>
      {rule.query && <pre>{rule.query}</pre>}
      {rule.lastError && <p class="error">{rule.lastError}</p>}
      <div class="parts">
        <section><h3>Evaluation</h3><FigureList kind="facts" all={evaluation(rule)} /></section>
        <Corrected rule={rule} />
        <Delay rule={rule} />
      </div>
    </section>
  );
}
