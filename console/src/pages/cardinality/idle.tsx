// Series without samples since some time, by metric. In the address:
//   idle  a duration before now; without it, today at 00:00

import { durationText, parseDuration, parseTime, secondText } from '../../clock';
import { count } from '../../format';
import { params, setParams } from '../../route';
import { List, type Tsdb, type Way } from './list';
import { narrowed } from './selector';

const CHOICES: [string, string][] = [['', 'today, 00:00'], ['1h', '1 hour ago'], ['24h', '24 hours ago'], ['7d', '7 days ago'], ['30d', '30 days ago']];

/** Since when, at this moment, in milliseconds. */
export function idleSince(): number {
  const now = Date.now();
  const ago = parseDuration(params.peek().get('idle') ?? '');
  return ago === null ? parseTime(secondText(now).slice(0, 10)) ?? now : now - ago;
}

function Choice() {
  const { value: at } = params;
  const chosen = at.get('idle') ?? '';
  const isListed = CHOICES.some(([name]) => name === chosen);
  return (
    <label class="inline">since
      <select value={chosen} onChange={(event) => setParams({ idle: event.currentTarget.value || null })}>
        {CHOICES.map(([name, title]) => <option key={name} value={name}>{title}</option>)}
        {!isListed && <option value={chosen}>{parseDuration(chosen) === null ? 'today, 00:00' : `${chosen} ago`}</option>}
      </select>
    </label>
  );
}

/** The series themselves, of those with samples in the year before. */
function queryOf(selector: string, since_ms: number): string {
  const chosen_ms = parseDuration(params.value.get('idle') ?? '');
  const length = durationText(chosen_ms ?? Math.max(1, Math.ceil((Date.now() - since_ms) / 1000)) * 1000);
  return `last_over_time(${selector}[1y]) unless last_over_time(${selector}[${length}])`;
}

function noteOf(idle: number, total: number, since_ms: number): string {
  const since = secondText(since_ms);
  if (idle === 0) return `All ${count(total)} series have a sample since ${since}.`;
  return `${count(idle)} of ${count(total)} series (${Number(((100 * idle) / total).toPrecision(3))} %) have no sample since ${since}.`;
}

export function IdleList({ data, filter }: { data: Tsdb; filter: string }) {
  const { seriesIdle, idleSince: since, seriesIdleByMetricName: rows, totalSeries } = data;
  if (seriesIdle === undefined || since === undefined || !rows) return null;
  const way = (name: string): Way => {
    const match = narrowed(filter, '__name__', '=', name);
    return { match, query: queryOf(match, since) };
  };
  return (
    <List title="Without samples" tool={<Choice />} note={noteOf(seriesIdle, totalSeries, since)} head="Metric" unit="Series" rows={rows} total={totalSeries}
      way={(row) => way(row.name)} />
  );
}
