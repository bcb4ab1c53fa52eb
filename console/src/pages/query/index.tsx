// The Query page: PromQL over a time range, as a chart, a table or JSON.

import { isRefused, nextAsk, useRefresh, useRuns } from '../../ask';
import { Broken } from '../../components/broken';
import { RefreshChoice } from '../../components/choice';
import { Busy, Empty } from '../../components/notice';
import { selectorsOf } from '../../components/selectors';
import { Stored } from '../../components/stored';
import { StepInput } from '../../components/step';
import { TabPanel, Tabs } from '../../components/tabs';
import { TimePicker } from '../../components/timepicker';
import { secondText } from '../../clock';
import type { Look } from '../../components/chart';
import { params } from '../../route';
import { Downloads } from './downloads';
import { Begin } from './begin';
import { CHECKS } from './checks';
import { addQuery, letter, runDrafts } from './drafts';
import { Graph } from './graph';
import { HeatToggle, isHeat } from './heat';
import { KeptMenus } from './kept';
import { isEmpty } from './lines';
import { Rows } from './rows';
import { answers, cancel, isRunning, leave, run, runAll } from './run';
import { Sparse } from './sparse';
import { asked, enabled, explainHref, look, refresh_ms, toggleLook, view, type View } from './state';
import { Json, Samples } from './tables';
import './query.css';

const VIEWS: [View, string][] = [['graph', 'Graph'], ['table', 'Table'], ['json', 'JSON']];
const LOOKS: [keyof Look, string][] = [['stacked', 'Stacked'], ['zero', 'From zero'], ['log', 'Logarithmic'], ['points', 'Points']];

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
      <RefreshChoice />
      <span class="gap" />
      <KeptMenus />
      {isRunning.value
        ? <button type="button" class="run" onClick={cancel}>Cancel</button>
        : <button type="button" class="run primary" onClick={runDrafts} title="Enter in a query">Run</button>}
    </div>
  );
}

function Nothing() {
  if (enabled.value.length === 0) return <Begin />;
  const failures = answers.value.flatMap((answer) => answer?.failure ?? []);
  if (failures.some(({ kind }) => kind === 'canceled')) return <Empty title="Cancelled"><button type="button" onClick={() => void runAll()}>Run again</button></Empty>;
  if (failures.length > 0) return <Empty title="No answer"><p>What is wrong stands beside the query.</p></Empty>;
  const now = run.value;
  const selectors = selectorsOf(...enabled.value.map(({ text }) => text));
  return (
    <Empty title="No samples">
      {now?.isRange && <p>Nothing matches between {secondText(now.span.from_ms)} and {secondText(now.span.to_ms)}.</p>}
      {now && !now.isRange && <p>Nothing matches at {secondText(now.span.to_ms)}, the end of the range.</p>}
      <Sparse />
      <p>{asked.value.map((query, at) => enabled.value.includes(query) && (
        <span key={at}><a href={explainHref(query.text)}>Explain{enabled.value.length > 1 && ` ${letter(at)}`}</a>{' '}</span>
      ))}shows which part gives no series.</p>
      {selectors.length > 0 && <Stored selectors={selectors} shown={now?.span ?? null} />}
    </Empty>
  );
}

function Answer() {
  if (isEmpty.value) return run.value || !isRunning.value ? <Nothing /> : null;
  return view.value === 'graph' ? <Graph /> : view.value === 'table' ? <Samples /> : <Json />;
}

function Head() {
  return (
    <div class="tabs">
      <Tabs label="View" param="view" tabs={VIEWS} chosen={view.value} />
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
  // One that is refused does not keep the others from being asked again.
  const failures = answers.value.flatMap((answer) => (answer ? [answer.failure] : []));
  const wanted = failures.filter((one) => !isRefused(one));
  useRefresh(wanted.length === 0 ? null : nextAsk(refresh_ms.value, ...wanted), isRunning.value, () => void runAll());
  return (
    <div class="page">
      <h1 class="hidden">Query</h1>
      <Bar />
      <Broken checks={CHECKS} />
      <Rows />
      <button type="button" class="quiet add" onClick={addQuery}>+ Add query</button>
      <section class="card" aria-label="Answer">
        <Busy on={isRunning.value} />
        <Head />
        <TabPanel param="view" chosen={view.value}><Answer /></TabPanel>
      </section>
    </div>
  );
}
