// The Rules page: the rules of rule files, how their evaluations went, and how late samples correct
// their rows. In the address:
//   by       `group`: a row for each group, not for each rule
//   filter   words that occur in names, groups, files, expressions or labels
//   group    file and name of a group: only its rules
//   only     `failing`, `behind`, `recording` or `alerting`
//   order    a column; with `-` before it the largest first
//   rule     the rule of which all is shown
//   refresh  a duration or `off`; without it every ten seconds

import { useMemo, useState } from 'preact/hooks';
import { send } from '../../api';
import { useAsked, type Answered } from '../../ask';
import { clockText, parseDuration } from '../../clock';
import { Broken, refreshOf, wordOf } from '../../components/broken';
import { Choice, RefreshChoice } from '../../components/choice';
import { Busy, Empty, ErrorBox, Remarks, remarks } from '../../components/notice';
import { orderCheck, Table } from '../../components/table';
import { TabPanel, Tabs } from '../../components/tabs';
import { isNarrow } from '../../components/window';
import { count } from '../../format';
import { params, setParams } from '../../route';
import { COLUMNS, GROUPS, NARROW } from './columns';
import { One } from './one';
import { allGroups, groupId, matching, ONLY, type Found } from './rule';
import './rules.css';

const DEFAULT_REFRESH = '10s';
const LEAST_MS = 2000;
const [DEFAULT_ORDER, GROUPS_ORDER] = ['rule', 'group'];
const WORDS: Record<string, string> = { all: 'all rules', failing: 'failing', behind: 'with dirty steps', recording: 'recording', alerting: 'alerting' };

type By = 'rule' | 'group';
const byGroup = () => params.value.get('by') === 'group';
const columns = () => (isNarrow.value ? NARROW : COLUMNS);

const CHECKS = [
  wordOf('by', ['rule', 'group'], 'rules are listed'),
  refreshOf(`it refreshes every ${DEFAULT_REFRESH}`, LEAST_MS), wordOf('only', Object.keys(ONLY), 'all rules are shown'),
  () => (byGroup() ? orderCheck(() => GROUPS, GROUPS_ORDER)() : orderCheck(columns, DEFAULT_ORDER)()),
];

/** Has the server read its rule files again; `said` is told how that went. */
function Reload({ again, said }: { again: () => void; said: (text: string, isError: boolean) => void }) {
  const [isSent, setSent] = useState(false);
  const click = async () => {
    setSent(true);
    const answer = await send('-/reload', {}, { method: 'POST' });
    setSent(false);
    if (answer instanceof Response) said('The rule files were read again.', false);
    else said(`${answer.text}${answer.status === 500 ? '. The rules that run stay.' : ''}`, true);
    again();
  };
  return <button type="button" disabled={isSent} onClick={() => void click()} title="Read the rule files again">Reload</button>;
}

function Bar({ found, shown, answered: { at_ms, again } }: { found: Found | null; shown: number; answered: Answered<Found> }) {
  const [said, setSaid] = useState({ text: '', isError: false });
  const [all, what] = byGroup() ? [found?.groups.length, 'groups'] : [found?.rules.length, 'rules'];
  return (
    <>
      <div class="tabs bar">
        <Tabs<By> label="Rows" param="by" tabs={[['rule', 'Rules'], ['group', 'Groups']]} chosen={byGroup() ? 'group' : 'rule'} also={{ order: null }} />
        <input type="search" aria-label="Filter" placeholder="Filter by name, expression or label" value={params.value.get('filter') ?? ''}
          onInput={(event) => setParams({ filter: event.currentTarget.value || null }, true)} />
        {params.value.get('group') !== null && (
          <button type="button" class="toggle" aria-pressed="true" title="Show the rules of all groups" onClick={() => setParams({ group: null })}>One group</button>
        )}
        {!byGroup() && <Choice label="Show" param="only" values={Object.keys(WORDS)} initial="all" text={(word) => WORDS[word] ?? word} replace />}
        <span class="hint" role="status">{all !== undefined && `${count(shown)} of ${count(all)} ${what}`}</span>
        <span class="gap" />
        <span class="hint at">{at_ms > 0 && `as of ${clockText(at_ms)}`}</span>
        <RefreshChoice initial={DEFAULT_REFRESH} />
        {found?.mayReload && <Reload again={again} said={(text, isError) => setSaid({ text, isError })} />}
        <button type="button" onClick={again}>Ask again</button>
      </div>
      <p class={said.isError ? 'error' : 'hint'} role="status" hidden={said.text === ''}>{said.text}</p>
    </>
  );
}

function NoRules() {
  return (
    <Empty title="No rules">
      <p>The server evaluates rule files of Prometheus that it is started with:</p>
      <pre>{"latewood serve --rules '/etc/latewood/rules/*.yml'"}</pre>
      <p>Rows of recording rules are corrected when late samples come.</p>
    </Empty>
  );
}

function NoMatch() {
  return <Empty title="No rule matches"><button type="button" onClick={() => setParams({ filter: null, only: null, group: null })}>Show all rules</button></Empty>;
}

export function RulesPage() {
  const { value: at } = params;
  const refresh = at.get('refresh') ?? DEFAULT_REFRESH;
  const every_ms = refresh === 'off' ? undefined : Math.max(LEAST_MS, parseDuration(refresh) ?? 10_000);
  const answered = useAsked<Found>(allGroups, 'rules', every_ms);
  const { data, failure, isRunning, again } = answered;
  const [filter, only, chosen, group] = [at.get('filter') ?? '', at.get('only') ?? '', at.get('rule'), at.get('group')];
  const shown = useMemo(() => matching(data?.rules ?? [], filter, byGroup() ? '' : only, group), [data, filter, only, group, byGroup()]);
  const groups = useMemo(() => [...new Set(shown.map((rule) => rule.group))], [shown]);
  const rule = useMemo(() => data?.rules.find((one) => one.id === chosen), [data, chosen]);
  const isEmpty = shown.length === 0;
  return (
    <div class="page listing rules">
      <h1 class="hidden">Rules</h1>
      <Bar found={data} shown={byGroup() ? groups.length : shown.length} answered={answered} />
      <Broken checks={CHECKS} />
      {data && <Remarks all={remarks('warning', data.warnings)} />}
      {failure && (
        <ErrorBox failure={failure} retry={again}>
          {failure.status === 403 && <p>This page needs a user with permission for the command TS.MRANGE.</p>}
          {failure.status === 0 && data && <p>Below is what was answered last.</p>}
        </ErrorBox>
      )}
      {rule && <One rule={rule} />}
      {data && chosen !== null && !rule && <p class="hint" role="status">There is no rule {chosen} now.</p>}
      <section class="card list" aria-label="List">
        <Busy on={isRunning} />
        <TabPanel param="by" chosen={byGroup() ? 'group' : 'rule'}>
          {data && (data.rules.length === 0 ? <NoRules /> : isEmpty && <NoMatch />)}
          {data && !isEmpty && (byGroup()
            ? <Table key="group" label="Groups" columns={GROUPS} rows={groups} id={groupId} order={GROUPS_ORDER} />
            : <Table key="rule" label="Rules" columns={columns()} rows={shown} id={(row) => row.id} order={DEFAULT_ORDER} />)}
        </TabPanel>
      </section>
    </div>
  );
}
