// Series by their labels, as a table whose rows lead to them.

import { useMemo } from 'preact/hooks';
import { Table, type Column } from '../../components/table';
import { seriesText, type Labels } from '../../format';
import { labelsHref } from './state';

interface Row {
  metric: string;
  pairs: string;
  address: string;
}

function rowOf(labels: Labels): Row {
  const { __name__: metric = '', ...rest } = labels;
  return { metric, pairs: Object.keys(rest).length > 0 ? seriesText(rest).slice(1, -1) : '', address: labelsHref(labels) };
}

const COLUMNS: Column<Row>[] = [
  { name: 'metric', title: 'Metric', by: (row) => row.metric, cell: (row) => <a href={row.address} title={row.metric}>{row.metric || '""'}</a>, width: '34%' },
  { name: 'labels', title: 'Labels', by: (row) => row.pairs, cell: (row) => <span title={row.pairs}>{row.pairs}</span> },
];

export function SeriesList({ found }: { found: Labels[] }) {
  const rows = useMemo(() => found.map(rowOf), [found]);
  return <Table label="Series" columns={COLUMNS} rows={rows} id={(_, index) => index} />;
}
