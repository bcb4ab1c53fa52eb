// Lateness over days and weeks, across restarts: from the figures that a server with `--self-metrics`
// writes to itself. It is that of all protocols.

import { useMemo } from 'preact/hooks';
import { api, type Outcome } from '../../api';
import { isUnanswered, useAsked } from '../../ask';
import { durationText, parseDuration, timeText } from '../../clock';
import { wordOf } from '../../components/broken';
import { Chart, type Look } from '../../components/chart';
import { Choice } from '../../components/choice';
import { Busy, ErrorBox } from '../../components/notice';
import { Table, type Column } from '../../components/table';
import { count, UNKNOWN } from '../../format';
import { params } from '../../route';
import { by, type By } from './state';
import { ageText } from './text';
import { AGES_MS, LOGARITHMIC, LINEAR, percent } from './times';

const SPANS = ['1d', '7d', '30d'];
const DEFAULT_SPAN = '7d';
export const PAST = wordOf('past', SPANS, `the history is that of ${DEFAULT_SPAN}`);
const POINTS = 240;
const ROWS = 20;
const REFRESH_MS = 60_000;
const HEIGHT_PX = 160;
const OWN = '__self__="true"';
/** What counts late samples, and the largest of what tells their ages, by what rows are about. */
const ROWS_OF: Record<By, { counts: string; ages?: string; labels: string[] }> = {
  protocol: { counts: 'latewood_late_samples_total', labels: ['route'] },
  metric: { counts: 'latewood_late_metric_samples_total', ages: 'latewood_late_metric_age_seconds', labels: ['metric'] },
  sender: { counts: 'latewood_late_sender_samples_total', ages: 'latewood_late_sender_age_seconds', labels: ['sender', 'user'] },
  label: { counts: 'latewood_late_label_samples_total', ages: 'latewood_late_label_age_seconds', labels: ['label', 'value'] },
};

interface Series { metric: Record<string, string>; values: [number, string][] }
interface Sample { metric: Record<string, string>; value: [number, string] }
interface Row { name: string; late: number; age_ms: number | null }
interface Found { times: number[]; shares: (number | null)[]; delays_ms: (number | null)[]; rows: Row[]; about: By; span: { from_ms: number; to_ms: number } }

/** The values of the only series at `times`. */
function line(found: Series[], times: number[], scale: number): (number | null)[] {
  const at = new Map(found[0]?.values.map(([time_s, value]) => [Math.round(time_s * 1000), Number(value) * scale]));
  return times.map((time) => at.get(time) ?? null);
}

function rowsOf(labels: string[], counts: Sample[], ages: Sample[]): Row[] {
  const name = ({ metric }: Sample) => labels.map((label) => metric[label] ?? '').join(' ').trim();
  const age = new Map(ages.map((one) => [name(one), 1000 * Number(one.value[1])]));
  const rows = counts.map((one) => ({ name: name(one), late: Math.round(Number(one.value[1])), age_ms: age.get(name(one)) ?? null }));
  return rows.filter((row) => row.late > 0);
}

async function ask(span_ms: number, about: By, signal: AbortSignal): Promise<Outcome<Found>> {
  const step_ms = Math.max(60_000, Math.ceil(span_ms / POINTS / 60_000) * 60_000);
  const to_ms = Math.floor(Date.now() / 1000) * 1000;
  const times = Array.from({ length: Math.floor(span_ms / step_ms) + 1 }, (_, at) => to_ms - span_ms + at * step_ms);
  const [step, span] = [step_ms, span_ms].map(durationText);
  const { counts, ages, labels } = ROWS_OF[about];
  const over = (query: string) =>
    api<{ result: Series[] }>('query_range', { query, start: times[0]! / 1000, end: to_ms / 1000, step }, { method: 'POST', signal });
  const now = (query: string) => api<{ result: Sample[] }>('query', { query }, { method: 'POST', signal });
  const rate = (labels: string) => `sum(rate(latewood_samples_total{${OWN}${labels}}[${step}]))`;
  const by = `by (${labels.join(', ')})`;
  const [shares, delays, late, oldest] = await Promise.all([
    over(`100 * ${rate(',order="late"')} / ${rate('')}`),
    over(`max(max_over_time(latewood_late_delay_seconds{${OWN},share="0.99"}[${step}]))`),
    now(`topk(${ROWS}, sum ${by} (increase(${counts}{${OWN}}[${span}] anchored)))`),
    ages ? now(`max ${by} (max_over_time(${ages}{${OWN},share="0.99"}[${span}]))`) : null,
  ]);
  if (!shares.ok) return shares;
  if (!delays.ok) return delays;
  if (!late.ok) return late;
  if (oldest && !oldest.ok) return oldest;
  const data = {
    times, shares: line(shares.data.result, times, 1), delays_ms: line(delays.data.result, times, 1000), about,
    rows: rowsOf(labels, late.data.result, oldest?.data.result ?? []), span: { from_ms: times[0]!, to_ms },
  };
  return { ...shares, data };
}

const COLUMNS = (about: By): Column<Row>[] => [
  { name: 'name', title: about[0]!.toUpperCase() + about.slice(1), by: (row) => row.name, cell: (row) => row.name || <em>no name</em> },
  { name: 'late', title: 'Late', by: (row) => row.late, cell: (row) => count(row.late), isNumber: true, width: '110px' },
  ...(ROWS_OF[about].ages
    ? [{ name: 'age', title: 'Age p99, at most', by: (row: Row) => row.age_ms ?? 0, cell: (row: Row) => (row.age_ms === null ? UNKNOWN : ageText(row.age_ms)), isNumber: true, width: '150px' }]
    : []),
];

function Curve({ title, values, found, look, format, ticks }: { title: string; values: (number | null)[]; found: Found; look: Look; format: (value: number) => string; ticks?: number[] }) {
  const lines = useMemo(() => [{ label: title, index: 0, values, isHidden: false }], [title, values]);
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <Chart label={`${title} from ${timeText(found.span.from_ms)} to ${timeText(found.span.to_ms)}`} times={found.times} lines={lines} span={found.span} look={look}
        height={HEIGHT_PX} focus={-1} onCursor={() => {}} format={format} ticks={ticks} />
    </figure>
  );
}

function Shown({ found }: { found: Found }) {
  const columns = useMemo(() => COLUMNS(found.about), [found.about]);
  if (found.shares.every((one) => one === null) && found.rows.length === 0) {
    return <p class="hint">Nothing is written yet. A server that is started with <code>--self-metrics 15s</code> writes its figures to itself; from then on they are shown here.</p>;
  }
  return (
    <>
      <div class="pair">
        <Curve title="Share of late samples" values={found.shares} found={found} look={LINEAR} format={percent} />
        <Curve title="Delay after which 99 % have come" values={found.delays_ms} found={found} look={LOGARITHMIC} format={ageText} ticks={AGES_MS} />
      </div>
      {found.rows.length > 0 && (
        <>
          <Table label={`History of late samples by ${found.about}`} columns={columns} rows={found.rows} id={(row) => row.name} />
          <p class="hint">
            {found.about === 'protocol' ? 'Counted while the server wrote its figures.'
              : 'Only those with most late samples in some hour have rows, counted while the server wrote its figures. Ages are the largest that an hour had.'}
          </p>
        </>
      )}
    </>
  );
}

export function History() {
  const text = params.value.get('past') ?? '';
  const span_ms = parseDuration(SPANS.includes(text) ? text : DEFAULT_SPAN)!;
  const about = by.value;
  const { data, failure, isRunning, again } = useAsked<Found>((signal) => ask(span_ms, about, signal), `${span_ms} ${about}`, REFRESH_MS);
  return (
    <section class="card times history" aria-label="History">
      <div class="tabs"><h2>History</h2><span class="gap" /><Choice label="Last" param="past" values={SPANS} initial={DEFAULT_SPAN} /></div>
      <Busy on={isRunning && data === null} />
      {failure && !isUnanswered(failure) && <ErrorBox failure={failure} retry={again} />}
      {data && data.about === about && <Shown found={data} />}
    </section>
  );
}
