// The Compaction page: compaction rules, and how far they are behind their sources. In the address:
//   filter   words that occur in the keys or the aggregator
//   only     `behind`: only rules with dirty or failed buckets
//   order    a column; with `-` before it the largest first
//   rule     the destination of the rule whose failed buckets are shown
//   refresh  a duration or `off`; without it every ten seconds

import { useMemo } from 'preact/hooks';
import { useAsked } from '../../ask';
import { clockText, parseDuration } from '../../clock';
import { Broken, refreshOf, wordOf } from '../../components/broken';
import { RefreshChoice } from '../../components/choice';
import { Busy, Empty, ErrorBox } from '../../components/notice';
import { orderCheck, Table } from '../../components/table';
import { isNarrow } from '../../components/window';
import { count } from '../../format';
import { params, setParams } from '../../route';
import { COLUMNS, NARROW } from './columns';
import { Failed } from './failed';
import { allRules, isBehind, matching, RULES_MAX, soFar, type Found, type Rule } from './rule';
import './compaction.css';

const DEFAULT_REFRESH = '10s';
const LEAST_MS = 2000;
/** Two lines of a key, or two keys where the screen is narrow; compaction.css has the same. */
const ROW_PX = 44;
const NARROW_PX = 52;

const DEFAULT_ORDER = 'source';

const columns = () => (isNarrow.value ? NARROW : COLUMNS);

const CHECKS = [
  refreshOf(`it refreshes every ${DEFAULT_REFRESH}`, LEAST_MS), wordOf('only', ['behind'], 'all rules are shown'), orderCheck(columns, DEFAULT_ORDER),
];

function Bar({ rules, shown, at_ms, again }: { rules: Rule[]; shown: number; at_ms: number; again: () => void }) {
  const behind = useMemo(() => rules.filter(isBehind).length, [rules]);
  return (
    <div class="bar">
      <input type="search" aria-label="Filter" placeholder="Filter by key or aggregator" value={params.value.get('filter') ?? ''}
        onInput={(event) => setParams({ filter: event.currentTarget.value || null }, true)} />
      <label class="inline">
        <input type="checkbox" checked={params.value.get('only') === 'behind'} onChange={(event) => setParams({ only: event.currentTarget.checked ? 'behind' : null })} />
        Only dirty or failed ({count(behind)})
      </label>
      <span class="hint" role="status">{at_ms > 0 && `${count(shown)} of ${count(rules.length)} rules`}</span>
      <span class="gap" />
      <span class="hint at">{at_ms > 0 && `as of ${clockText(at_ms)}`}</span>
      <RefreshChoice initial={DEFAULT_REFRESH} />
      <button type="button" onClick={again}>Ask again</button>
    </div>
  );
}

function NoRules() {
  return (
    <Empty title="No compaction rules">
      <p>A rule keeps aggregates of a series in another one, with redis-cli or any client of Redis:</p>
      <pre>{'TS.CREATE room\nTS.CREATE room:1m\nTS.CREATERULE room room:1m AGGREGATION avg 60000'}</pre>
      <p>The option <code>--ts-compaction-policy avg:1M:30d</code> makes rules with each new series.</p>
      <p>Rules whose source this user may not read are not shown.</p>
    </Empty>
  );
}

function NoMatch() {
  return (
    <Empty title="No rule matches">
      <button type="button" onClick={() => setParams({ filter: null, only: null })}>Show all rules</button>
    </Empty>
  );
}

function Rules({ found, shown }: { found: Found; shown: Rule[] }) {
  if (found.rules.length === 0) return <NoRules />;
  if (shown.length === 0) return <NoMatch />;
  return (
    <>
      {found.isCut && <p class="hint">Only the first {count(RULES_MAX)} rules are asked for.</p>}
      <Table label="Compaction rules" columns={columns()} rows={shown} rowPx={isNarrow.value ? NARROW_PX : ROW_PX} id={(row) => `${row.source}\n${row.destination}`} order={DEFAULT_ORDER} />
    </>
  );
}

export function CompactionPage() {
  const { value: at } = params;
  const refresh = at.get('refresh') ?? DEFAULT_REFRESH;
  const every_ms = refresh === 'off' ? undefined : Math.max(LEAST_MS, parseDuration(refresh) ?? 10_000);
  const { data, at_ms, failure, isRunning, again } = useAsked<Found>(allRules, 'compaction', every_ms);
  const [filter, isBehindOnly, chosen] = [at.get('filter') ?? '', at.get('only') === 'behind', at.get('rule')];
  const shown = useMemo(() => matching(data?.rules ?? [], filter, isBehindOnly), [data, filter, isBehindOnly]);
  const rule = useMemo(() => data?.rules.find((one) => one.destination === chosen), [data, chosen]);
  return (
    <div class="page listing compaction">
      <h1 class="hidden">Compaction rules</h1>
      <Bar rules={data?.rules ?? []} shown={shown.length} at_ms={at_ms} again={again} />
      <Broken checks={CHECKS} />
      {failure && (
        <ErrorBox failure={failure} retry={again}>
          {failure.status === 403 && <p>This page needs a user with permission for the command TS.INFO.</p>}
          {failure.status === 0 && data && <p>Below is what was answered last.</p>}
        </ErrorBox>
      )}
      {rule && <Failed rule={rule} />}
      {data && chosen !== null && !rule && <p class="hint" role="status">No rule writes to {chosen} now.</p>}
      <section class="card list" aria-label="Rules">
        <Busy on={isRunning} />
        {data && <Rules found={data} shown={shown} />}
        {!data && isRunning && <p class="hint" role="status">{soFar.value > 0 && `${count(soFar.value)} rules so far`}</p>}
      </section>
    </div>
  );
}
