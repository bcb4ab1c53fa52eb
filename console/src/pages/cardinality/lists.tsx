// The lists of `status/tsdb`: each row leads to a narrower filter and to the Query page.

import { useMemo } from 'preact/hooks';
import { Icon } from '../../components/icon';
import { Table, type Column } from '../../components/table';
import { bytes, count } from '../../format';
import { href, params } from '../../route';
import { counted, narrowed, pair } from './selector';

export interface Entry {
  name: string;
  value: number;
}

/** What `status/tsdb` answers. */
export interface Tsdb {
  headStats: { numSeries: number; numLabelPairs: number; chunkCount: number; minTime: number; maxTime: number };
  totalSeries: number;
  seriesCountByMetricName: Entry[];
  labelValueCountByLabelName: Entry[];
  seriesCountByLabelName: Entry[];
  memoryInBytesByLabelName: Entry[];
  seriesCountByLabelValuePair: Entry[];
  seriesCountByFocusLabelValue?: Entry[];
}

/** Where a row leads: parameters of this page that change, and a query. */
interface Way {
  match?: string;
  focus?: string;
  query: string;
}

interface ListProperties {
  title: string;
  head: string;
  unit: string;
  rows: Entry[];
  /** What all rows are parts of; null where they are not. */
  total: number | null;
  show?: (value: number) => string;
  way: (row: Entry) => Way;
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

function List({ title, head, unit, rows, total, show = count, way }: ListProperties) {
  const { value: at } = params;
  const columns = useMemo(() => {
    const isFiltered = at.has('match');
    const made: Column<Entry>[] = [
      { name: 'name', title: head, by: (row) => row.name, cell: (row) => <Name row={row} way={way(row)} isWhole={isFiltered && row.value === total} /> },
      { name: 'value', title: unit, by: (row) => row.value, cell: (row) => show(row.value), isNumber: true, width: '88px' },
    ];
    if (total !== null) {
      made.push({ name: 'share', title: 'Share', width: '76px', cell: (row) => <meter min={0} max={total} value={row.value} title={`${(100 * row.value / total).toFixed(1)} %`} /> });
    }
    made.push({
      name: 'query', title: 'Query', isTitleHidden: true, width: '40px',
      cell: (row) => <a class="out" href={href('query', { q: way(row).query, view: 'table' })} title={way(row).query} aria-label={`Query ${row.name}`}><Icon name="right" /></a>,
    });
    return made;
  }, [at, rows, total]);
  return (
    <section class="card">
      <h2>{title}</h2>
      <Table label={title} columns={columns} rows={rows} id={(row) => row.name} />
    </section>
  );
}

export function Lists({ data, filter, focus }: { data: Tsdb; filter: string; focus: string }) {
  const ofLabel = (row: Entry): Way => ({ focus: row.name, query: counted(row.name, narrowed(filter, row.name, '!=', '')) });
  const ofPair = (label: string, value: string): Way => {
    const match = narrowed(filter, label, '=', value);
    return { match, query: label === '__name__' ? match : counted('__name__', match) };
  };
  const total = data.totalSeries;
  return (
    <div class="lists">
      {focus !== '' && (
        <List title={`Series by value of ${focus}`} head="Value" unit="Series" rows={data.seriesCountByFocusLabelValue ?? []} total={total}
          way={(row) => ofPair(focus, row.name)} />
      )}
      <List title="Series by metric" head="Metric" unit="Series" rows={data.seriesCountByMetricName} total={total} way={(row) => ofPair('__name__', row.name)} />
      <List title="Series by pair" head="Label and value" unit="Series" rows={data.seriesCountByLabelValuePair} total={total} way={(row) => ofPair(...pair(row.name))} />
      <List title="Series by label" head="Label" unit="Series" rows={data.seriesCountByLabelName} total={total} way={ofLabel} />
      <List title="Values by label" head="Label" unit="Values" rows={data.labelValueCountByLabelName} total={null} way={ofLabel} />
      <List title="Memory by label" head="Label" unit="Memory" rows={data.memoryInBytesByLabelName} total={null} show={bytes} way={ofLabel} />
    </div>
  );
}
