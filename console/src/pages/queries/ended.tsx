// The queries that took most, of the last texts that the server keeps.

import { useMemo } from 'preact/hooks';
import { Empty } from '../../components/notice';
import { Table, type Column } from '../../components/table';
import { durationText } from '../../clock';
import { count, took } from '../../format';
import { QueryLink } from './link';

/** What queries of one text took. */
export interface EndedQuery {
  query: string;
  timeRangeSeconds: number;
  count: number;
  avgDurationSeconds: number;
  sumDurationSeconds: number;
}

export interface Top {
  topByCount: EndedQuery[];
  topByAvgDuration: EndedQuery[];
  topBySumDuration: EndedQuery[];
}

export type Ranking = 'average' | 'count' | 'sum';

const LISTS: Record<Ranking, keyof Top> = { average: 'topByAvgDuration', count: 'topByCount', sum: 'topBySumDuration' };

function place({ timeRangeSeconds }: EndedQuery): Record<string, string> {
  return timeRangeSeconds > 0 ? { range: durationText(timeRangeSeconds * 1000) } : { view: 'table' };
}

const COLUMNS: Column<EndedQuery>[] = [
  { name: 'query', title: 'Query', cell: (row) => <QueryLink text={row.query} at={place(row)} /> },
  { name: 'range', title: 'Range', cell: (row) => (row.timeRangeSeconds > 0 ? durationText(row.timeRangeSeconds * 1000) : 'instant'), isNumber: true, width: '96px' },
  { name: 'count', title: 'Times', cell: (row) => count(row.count), isNumber: true, width: '84px' },
  { name: 'average', title: 'Average', cell: (row) => took(row.avgDurationSeconds * 1000), isNumber: true, width: '96px' },
  { name: 'sum', title: 'In all', cell: (row) => took(row.sumDurationSeconds * 1000), isNumber: true, width: '96px' },
];

export function Ended({ top, by }: { top: Top; by: Ranking }) {
  const columns = useMemo(() => COLUMNS.map((column) => (column.name === by ? { ...column, cell: (row: EndedQuery) => <strong>{column.cell(row)}</strong> } : column)), [by]);
  const rows = top[LISTS[by]];
  if (rows.length === 0) {
    return <Empty title="No query has ended yet"><p>The server keeps the last 1,000 texts since its start. Run one on the Query page.</p></Empty>;
  }
  return <Table key={by} label="Ended queries" columns={columns} rows={rows} id={(row) => row.query} />;
}
