// A list of `status/tsdb`: each row leads to a narrower filter and to the Query page.

import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { Icon } from '../../components/icon';
import { Table, type Column } from '../../components/table';
import { count } from '../../format';
import { href, params } from '../../route';

export interface Entry {
  name: string;
  value: number;
}

/** Its name is `label=value`, and either may contain `=`. */
export interface PairEntry extends Entry {
  label: string;
  labelValue: string;
}

/** What `status/tsdb` answers. */
export interface Tsdb {
  headStats: { numSeries: number; numLabelPairs: number; chunkCount: number; minTime: number; maxTime: number };
  totalSeries: number;
  seriesCountByMetricName: Entry[];
  labelValueCountByLabelName: Entry[];
  seriesCountByLabelName: Entry[];
  memoryInBytesByLabelName: Entry[];
  seriesCountByLabelValuePair: PairEntry[];
  seriesCountByFocusLabelValue?: Entry[];
  /** Series without samples since `idleSince`. */
  seriesIdle?: number;
  idleSince?: number;
  seriesIdleByMetricName?: Entry[];
}

/** Where a row leads: parameters of this page that change, and a query. */
export interface Way {
  match?: string;
  focus?: string;
  query: string;
}

interface ListProperties<Row extends Entry> {
  title: string;
  /** What stands beside the title, and below it. */
  tool?: ComponentChildren;
  note?: ComponentChildren;
  head: string;
  unit: string;
  rows: Row[];
  /** What all rows are parts of; null where they are not. */
  total: number | null;
  show?: (value: number) => string;
  way: (row: Row) => Way;
}

/** This page with a narrower filter or another label in focus. */
function narrower({ match, focus }: Way): string {
  const next = new URLSearchParams(params.value);
  if (match !== undefined) next.set('match', match);
  if (focus !== undefined) next.set('focus', focus);
  return href('cardinality', next);
}

function Name({ row, way, isWhole }: { row: Entry; way: Way; isWhole: boolean }) {
  const text = row.name === '' ? '""' : row.name;
  // A filter that all series pass already is not narrower.
  if (isWhole && way.focus === undefined) return <span title={text}>{text}</span>;
  return <a href={narrower(way)} title={text}>{text}</a>;
}

function Out({ row, way }: { row: Entry; way: Way }) {
  return <a class="out" href={href('query', { q: way.query, view: 'table' })} title={way.query} aria-label={`Query ${row.name}`}><Icon name="right" /></a>;
}

export function List<Row extends Entry>({ title, tool, note, head, unit, rows, total, show = count, way }: ListProperties<Row>) {
  const { value: at } = params;
  const columns = useMemo(() => {
    const isFiltered = at.has('match');
    const made: Column<Row>[] = [
      { name: 'name', title: head, by: (row) => row.name, cell: (row) => <Name row={row} way={way(row)} isWhole={isFiltered && row.value === total} /> },
      { name: 'value', title: unit, by: (row) => row.value, cell: (row) => show(row.value), isNumber: true, width: '88px' },
    ];
    if (total !== null) {
      made.push({ name: 'share', title: 'Share', width: '76px', cell: (row) => <meter min={0} max={total} value={row.value} title={`${(100 * row.value / total).toFixed(1)} %`} /> });
    }
    made.push({ name: 'query', title: 'Query', isTitleHidden: true, width: '40px', cell: (row) => <Out row={row} way={way(row)} /> });
    return made;
  }, [at, rows, total]);
  return (
    <section class="card" aria-label={title}>
      <div class="head"><h2>{title}</h2>{tool}</div>
      {note && <p class="hint">{note}</p>}
      {/* Two pairs may have the same text. */}
      <Table label={title} columns={columns} rows={rows} id={(_, index) => index} />
    </section>
  );
}
