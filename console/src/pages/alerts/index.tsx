// The Alerts page: alerts that are pending or fire, and who is told of them. In the address:
//   filter   words that occur in labels or annotations
//   state    `firing` or `pending`
//   order    a column; with `-` before it the largest first
//   alert    the alert of which all is shown
//   refresh  a duration or `off`; without it every ten seconds

import { useMemo } from 'preact/hooks';
import { api, type Outcome } from '../../api';
import { useAnswer, useAsked, type Answered } from '../../ask';
import { clockText, parseDuration } from '../../clock';
import { Broken, refreshOf, wordOf } from '../../components/broken';
import { Choice, RefreshChoice } from '../../components/choice';
import { Busy, Empty, ErrorBox, Remarks, remarks } from '../../components/notice';
import { orderCheck, Table } from '../../components/table';
import { count } from '../../format';
import { href, params, setParams } from '../../route';
import { alertsOf, managersOf, matching, type Alert } from './alert';
import { Managers } from './managers';
import { COLUMNS, One } from './table';
import './alerts.css';

const DEFAULT_REFRESH = '10s';
const LEAST_MS = 2000;
const DEFAULT_ORDER = 'state';
const STATES = ['firing', 'pending'];

const CHECKS = [
  refreshOf(`it refreshes every ${DEFAULT_REFRESH}`, LEAST_MS), wordOf('state', STATES, 'all alerts are shown'), orderCheck(() => COLUMNS, DEFAULT_ORDER),
];

function Bar({ alerts, shown, asked: { at_ms }, again }: { alerts: Alert[]; shown: number; asked: Answered<unknown>; again: () => void }) {
  const firing = alerts.filter(({ state }) => state === 'firing').length;
  return (
    <div class="bar">
      <input type="search" aria-label="Filter" placeholder="Filter by label or annotation" value={params.value.get('filter') ?? ''}
        onInput={(event) => setParams({ filter: event.currentTarget.value || null }, true)} />
      <Choice label="Show" param="state" values={['all', ...STATES]} initial="all" replace />
      <span class="hint" role="status">{at_ms > 0 && `${count(shown)} of ${count(alerts.length)} alerts, ${count(firing)} firing`}</span>
      <span class="gap" />
      <span class="hint at">{at_ms > 0 && `as of ${clockText(at_ms)}`}</span>
      <RefreshChoice initial={DEFAULT_REFRESH} />
      <button type="button" onClick={again}>Ask again</button>
    </div>
  );
}

function NoAlerts() {
  return (
    <Empty title="No alert is active">
      <p>Alerting rules of <a href={href('rules', { only: 'alerting' })}>rule files</a> make alerts.</p>
    </Empty>
  );
}

function Alerts({ alerts, shown }: { alerts: Alert[]; shown: Alert[] }) {
  if (alerts.length === 0) return <NoAlerts />;
  if (shown.length === 0) {
    return <Empty title="No alert matches"><button type="button" onClick={() => setParams({ filter: null, state: null })}>Show all alerts</button></Empty>;
  }
  return <Table label="Alerts" columns={COLUMNS} rows={shown} id={(row) => row.id} order={DEFAULT_ORDER} />;
}

/** An answer, and what the server says beside, such as that alerts are hidden from the user. */
interface Said {
  alerts: unknown;
  warnings: string[];
}

async function active(signal: AbortSignal): Promise<Outcome<Said>> {
  const outcome = await api<unknown>('alerts', {}, { signal });
  return outcome.ok ? { ...outcome, data: { alerts: outcome.data, warnings: outcome.warnings } } : outcome;
}

export function AlertsPage() {
  const { value: at } = params;
  const refresh = at.get('refresh') ?? DEFAULT_REFRESH;
  const every_ms = refresh === 'off' ? undefined : Math.max(LEAST_MS, parseDuration(refresh) ?? 10_000);
  const asked = useAsked<Said>(active, 'alerts', every_ms);
  const told = useAnswer<unknown>('alertmanagers', {}, every_ms);
  const { data, failure, isRunning } = asked;
  const again = () => { asked.again(); told.again(); };
  const [filter, state, chosen] = [at.get('filter') ?? '', at.get('state') ?? '', at.get('alert')];
  const alerts = useMemo(() => (data === null ? [] : alertsOf(data.alerts)), [data]);
  const managers = useMemo(() => (told.data === null ? null : managersOf(told.data)), [told.data]);
  const shown = useMemo(() => matching(alerts, filter, STATES.includes(state) ? state : ''), [alerts, filter, state]);
  const alert = alerts.find((one) => one.id === chosen);
  return (
    <div class="page listing alerts">
      <h1 class="hidden">Alerts</h1>
      <Bar alerts={alerts} shown={shown.length} asked={asked} again={again} />
      <Broken checks={CHECKS} />
      {data !== null && <Remarks all={remarks('warning', data.warnings)} />}
      {failure && (
        <ErrorBox failure={failure} retry={again}>
          {failure.status === 403 && <p>This page needs a user with permission for the command TS.MRANGE.</p>}
          {failure.status === 0 && data !== null && <p>Below is what was answered last.</p>}
        </ErrorBox>
      )}
      {alert && <One alert={alert} at_ms={asked.at_ms} />}
      {data !== null && chosen !== null && !alert && <p class="hint" role="status">{chosen} is not active now.</p>}
      <section class="card list" aria-label="Active alerts">
        <Busy on={isRunning} />
        {data !== null && <Alerts alerts={alerts} shown={shown} />}
      </section>
      <Managers managers={managers} asked={told} />
    </div>
  );
}
