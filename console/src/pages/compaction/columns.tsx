// The columns of the rules' table.

import { durationText, timeText } from '../../clock';
import { count, UNKNOWN } from '../../format';
import { href, params } from '../../route';
import type { Column } from '../../components/table';
import { When } from '../../components/when';
import type { Rule } from './rule';

const duration = (ms: number) => (Number.isNaN(ms) ? UNKNOWN : durationText(ms));

/** A key as a link to its series; two lines of it are shown. */
export function Key({ name }: { name: string }) {
  return <a class="key" href={href('series', { key: name })} title={name}>{name}</a>;
}

/** This page with this rule's failed buckets. */
function FailedLink({ rule }: { rule: Rule }) {
  const next = new URLSearchParams(params.value);
  next.set('rule', rule.destination);
  return <a class="bad" href={href('compaction', next)} title="Show which">{count(rule.failed_buckets)}</a>;
}

const KEYS: Column<Rule>[] = [
  { name: 'source', title: 'Source', by: (row) => row.source, cell: (row) => <Key name={row.source} /> },
  { name: 'destination', title: 'Destination', by: (row) => row.destination, cell: (row) => <Key name={row.destination} /> },
];

/** Both keys in one column, a line for each. */
const BOTH: Column<Rule> = { name: 'source', title: 'Rule', by: (row) => row.source, cell: (row) => <><Key name={row.source} /><Key name={row.destination} /></>, width: '148px' };

/** Those of the history, too. */
const dirty = (rule: Rule) => rule.dirty_buckets + rule.backfill_buckets;
const history = (rule: Rule) => (rule.backfill_buckets > 0 ? `${count(rule.backfill_buckets)} of them of the history before the rule` : undefined);

const FIGURES: Column<Rule>[] = [
  { name: 'aggregator', title: 'Aggregator', by: (row) => row.aggregator, cell: (row) => row.aggregator.toLowerCase(), width: '98px' },
  { name: 'bucket', title: 'Bucket', by: (row) => row.bucket_ms, cell: (row) => duration(row.bucket_ms), isNumber: true, width: '76px' },
  { name: 'align', title: 'Align', by: (row) => row.align_ms, cell: (row) => duration(row.align_ms), isNumber: true, width: '68px' },
  { name: 'dirty', title: 'Dirty', by: dirty, cell: (row) => <span class={dirty(row) > 0 ? 'warn' : ''} title={history(row)}>{count(dirty(row))}</span>, isNumber: true, width: '72px' },
  { name: 'failed', title: 'Failed', by: (row) => row.failed_buckets, cell: (row) => (row.failed_buckets > 0 ? <FailedLink rule={row} /> : count(row.failed_buckets)), isNumber: true, width: '72px' },
  {
    name: 'open', title: 'Open since', by: (row) => row.open?.first_ms ?? -Infinity, width: '96px',
    cell: ({ open }) => (open === null ? UNKNOWN : <When ms={open.first_ms} title={`${timeText(open.first_ms)} to ${timeText(open.last_ms)}`} />),
  },
  {
    name: 'recomputed', title: 'Recomputed', by: (row) => row.recomputed_ms ?? -Infinity, width: '106px',
    cell: ({ recomputed_ms: ms }) => (ms === null ? <When ms={NaN} title="Not since the start of the server" /> : <When ms={ms} />),
  },
];

const isState = ({ name }: Column<Rule>) => name === 'dirty' || name === 'failed';

export const COLUMNS: Column<Rule>[] = [...KEYS, ...FIGURES];
/** Of narrow screens: what is dirty or failed is in sight. */
export const NARROW: Column<Rule>[] = [BOTH, ...FIGURES.filter(isState), ...FIGURES.filter((column) => !isState(column))];
