// The Query page: PromQL over a time range, as a chart, a table or JSON.

import { isRefused, useRefresh, useRuns } from '../../ask';
import { Busy, Empty } from '../../components/notice';
import { ShowStored } from '../../components/showstored';
import { StepInput } from '../../components/step';
import { TimePicker } from '../../components/timepicker';
import { secondText } from '../../clock';
import type { Look } from '../../components/chart';
import { params, setParams } from '../../route';
import { Downloads } from './downloads';
import { addQuery, runDrafts } from './drafts';
import { Graph } from './graph';
import { HeatToggle, isHeat } from './heat';
import { KeptMenus } from './kept';
import { rows } from './lines';
import { Rows } from './rows';
import { answers, cancel, isRunning, leave, run, runAll } from './run';
import { asked, look, refresh_ms, toggleLook, view, type View } from './state';
import { Json, Samples } from './tables';
import './query.css';

const VIEWS: [View, string][] = [['graph', 'Graph'], ['table', 'Table'], ['json', 'JSON']];
const LOOKS: [keyof Look, string][] = [['stacked', 'Stacked'], ['zero', 'From zero'], ['log', 'Logarithmic'], ['points', 'Points']];
const REFRESHES = ['5s', '10s', '30s', '1m', '5m'];

/** What an answer depends on. */
function request(): string {
  const { value } = params;
  return JSON.stringify(['q', 'off', 'step', 'range', 'from', 'to'].map((name) => value.getAll(name)).concat([[String(view.value === 'table')]]));
}

function Bar() {
  return (
    <div class="bar">
      <TimePicker />
      <StepInput used_ms={run.value?.isRange ? run.value.step_ms : null} />
      <label class="inline">Refresh
        <select value={params.value.get('refresh') ?? ''} onChange={(event) => setParams({ refresh: event.currentTarget.value || null }, true)}>
          <option value="">off</option>
          {REFRESHES.map((one) => <option key={one} value={one}>{one}</option>)}
        </select>
      </label>
      <span class="gap" />
      <KeptMenus />
      {isRunning.value
        ? <button type="button" class="run" onClick={cancel}>Cancel</button>
        : <button type="button" class="run primary" onClick={runDrafts} title="Enter in a query">Run</button>}
    </div>
  );
}

function Nothing() {
  const isAsked = asked.value.some((query) => !query.isOff && query.text.trim() !== '');
  if (!isAsked) {
    return (
      <Empty title="No query yet">
        <p>Type the name of a metric above: names are completed from this server. Enter runs the query.</p>
      </Empty>
    );
  }
  const failures = answers.value.flatMap((answer) => answer?.failure ?? []);
  if (failures.some(({ kind }) => kind === 'canceled')) return <Empty title="Cancelled"><button type="button" onClick={() => void runAll()}>Run again</button></Empty>;
  if (failures.length > 0) return <Empty title="No answer"><p>What is wrong stands beside the query.</p></Empty>;
  const now = run.value;
  return (
    <Empty title="No samples">
      {now?.isRange && <p>Nothing matches between {secondText(now.span.from_ms)} and {secondText(now.span.to_ms)}.</p>}
      {now && !now.isRange && <p>Nothing matches at {secondText(now.span.to_ms)}, the end of the range.</p>}
      <ShowStored />
    </Empty>
  );
}

function Answer() {
  if (rows.value.length === 0) return run.value || !isRunning.value ? <Nothing /> : null;
  return view.value === 'graph' ? <Graph /> : view.value === 'table' ? <Samples /> : <Json />;
}

function Tabs() {
  return (
    <div class="tabs">
      <div role="tablist" aria-label="View">
        {VIEWS.map(([name, title]) => (
          <button key={name} type="button" role="tab" aria-selected={view.value === name} onClick={() => setParams({ view: name === 'graph' ? null : name })}>{title}</button>
        ))}
      </div>
      <span class="gap" />
      {view.value === 'graph' && <HeatToggle />}
      {view.value === 'graph' && !isHeat.value && LOOKS.map(([name, title]) => (
        <button key={name} type="button" class="toggle" aria-pressed={look.value[name]} onClick={() => toggleLook(name)}>{title}</button>
      ))}
      <Downloads />
    </div>
  );
}

export function QueryPage() {
  useRuns('query', request, () => void runAll(), leave);
  const isFutile = answers.value.every((answer) => answer === null || isRefused(answer.failure));
  useRefresh(isFutile ? null : refresh_ms.value, isRunning.value, () => void runAll());
  return (
    <div class="page">
      <h1 class="hidden">Query</h1>
      <Bar />
      <Rows />
      <button type="button" class="quiet add" onClick={addQuery}>+ Add query</button>
      <section class="card" aria-label="Answer">
        <Busy on={isRunning.value} />
        <Tabs />
        <Answer />
      </section>
    </div>
  );
}
