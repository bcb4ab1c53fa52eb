// The answers as a table, and as JSON.

import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { Table, type Column } from '../../components/table';
import { isNarrow } from '../../components/window';
import { count, labelOf, seriesText, type Labels } from '../../format';
import { timeText } from '../../clock';
import { labelsHref } from '../series/state';
import { letter } from './drafts';
import { answered, jsonParts } from './json';
import { found, samplesTotal, valueOf, type Found } from './lines';
import { rangeParams } from './state';

/** More labels than this stand in one column. */
const LABELS_MAX = 8;

/** Higher tables cannot be scrolled to their end: Firefox ends at 17.8 million pixels. */
const ROWS_MAX = 500_000;

interface Row {
  query: number;
  labels: Labels;
  time_s: number;
  value: string;
}

function rowsOf(all: Found[]): Row[] {
  const rows: Row[] = [];
  for (const { query, labels, samples } of all) {
    for (const [time_s, value] of samples.slice(0, ROWS_MAX - rows.length)) rows.push({ query, labels, time_s, value });
  }
  return rows;
}

/** Leads to the series of the row. Results of functions and operators have no metric, and are no series. */
function seriesLink({ labels }: Row, text: string): ComponentChildren {
  if (!('__name__' in labels)) return text;
  return <a class="series" href={labelsHref(labels, rangeParams())} title={`Series ${seriesText(labels)}`}>{text || '""'}</a>;
}

function columnsOf(all: Found[], isSmall: boolean): Column<Row>[] {
  const labels = new Set(all.flatMap((one) => Object.keys(one.labels)));
  const columns: Column<Row>[] = [];
  if (new Set(all.map((one) => one.query)).size > 1) {
    columns.push({ name: 'query', title: 'Query', cell: (row) => letter(row.query), by: (row) => row.query, width: '70px' });
  }
  if (labels.size > LABELS_MAX || labels.size === 0) {
    columns.push({ name: 'labels', title: 'Series', cell: (row) => seriesLink(row, seriesText(row.labels)), by: (row) => seriesText(row.labels) });
  } else {
    for (const label of [...labels].sort((a, b) => Number(b === '__name__') - Number(a === '__name__') || a.localeCompare(b))) {
      const isMetric = label === '__name__';
      const text = (row: Row) => labelOf(row.labels, label);
      columns.push({ name: `label ${label}`, title: isMetric ? 'metric' : label, cell: (row) => (isMetric ? seriesLink(row, text(row)) : text(row)), by: text });
    }
  }
  const first_s = all[0]?.samples[0]?.[0];
  if (all.some(({ samples }) => samples.some(([time_s]) => time_s !== first_s))) {
    columns.push({ name: 'time', title: 'Time', cell: (row) => timeText(Math.round(row.time_s * 1000)), by: (row) => row.time_s, width: '190px' });
  }
  const value: Column<Row> = { name: 'value', title: 'Value', cell: (row) => row.value, by: (row) => valueOf(row.value), isNumber: true, width: isSmall ? '120px' : '200px' };
  // On narrow screens it is in sight.
  return isSmall ? [...columns.slice(0, 1), value, ...columns.slice(1)] : [...columns, value];
}

export function Samples() {
  const all = found.value;
  const columns = useMemo(() => columnsOf(all, isNarrow.value), [all, isNarrow.value]);
  const rows = useMemo(() => rowsOf(all), [all]);
  const total = samplesTotal.value;
  return (
    <>
      <p class="hint">{rows.length < total ? `The first ${count(rows.length)} of ${count(total)} rows; Download has all.` : `${count(total)} rows`}</p>
      <Table label="Values" columns={columns} rows={rows} id={(_, index) => index} />
    </>
  );
}

const SHOWN_MAX = 300_000;

export function Json() {
  const all = answered.value;
  const text = useMemo(() => {
    let made = '';
    for (const part of jsonParts(all.length === 1 ? all[0]!.data : all)) {
      made += part;
      if (made.length > SHOWN_MAX) break;
    }
    return made;
  }, [all]);
  return (
    <>
      {text.length > SHOWN_MAX && <p class="hint">The first {count(SHOWN_MAX)} characters; Download has all.</p>}
      <pre class="json" tabIndex={0}>{text.slice(0, SHOWN_MAX)}</pre>
    </>
  );
}
