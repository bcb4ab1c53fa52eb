// Late samples by protocol, metric or sender.

import { useMemo } from 'preact/hooks';
import { durationText, parseDuration, secondText } from '../../clock';
import { ErrorBox } from '../../components/notice';
import { orderCheck, Table, type Column } from '../../components/table';
import { TabPanel, Tabs } from '../../components/tabs';
import { count, seriesText, UNKNOWN } from '../../format';
import { href, params } from '../../route';
import { ask, rows, rowsFailure, type Row } from './ask';
import { by, protocol, span, type By } from './state';
import { ageText, roundUp, shareText } from './text';

const TABS: [By, string][] = [['protocol', 'By protocol'], ['metric', 'By metric'], ['sender', 'By sender']];
const OTHERS: Record<By, string> = { protocol: '', metric: 'other metrics', sender: 'other senders' };
const YEAR_MS = 31_536_000_000;

/** The Query page with the metric, over a time in which its late samples lie if they are not older than a year. */
function queryOf(metric: string, max_ms: number): string {
  const range_ms = Math.min(YEAR_MS, parseDuration(roundUp(max_ms + (parseDuration(span.value) ?? 0))) ?? YEAR_MS);
  return href('query', { q: seriesText({ __name__: metric }), range: durationText(range_ms) });
}

function Name({ row }: { row: Row }) {
  if (row.isOthers) return <em>{OTHERS[by.value]}</em>;
  if (row.metric !== undefined) {
    return row.metric === '' ? <em>no name</em> : <a href={queryOf(row.metric, row.lateAgeMs.max)} title={`Query ${row.metric}`}>{row.metric}</a>;
  }
  if (row.protocol !== undefined) {
    const next = new URLSearchParams(params.value);
    next.set('protocol', row.protocol);
    return <a href={href('late', next)} title="Show this protocol alone">{row.protocol}</a>;
  }
  return <span title={row.sender}>{row.sender}</span>;
}

function columnsOf(what: By, lateInAll: number): Column<Row>[] {
  const number = (name: string, title: string, value: (row: Row) => number, show: (value: number, row: Row) => string, width = '84px'): Column<Row> =>
    ({ name, title, by: value, cell: (row) => show(value(row), row), isNumber: true, width });
  const age = (name: 'p50' | 'p90' | 'p99' | 'max', title: string) =>
    number(name, title, (row) => row.lateAgeMs[name], (ms, row) => (row.lateSamples > 0 ? ageText(ms) : UNKNOWN));
  const name: Column<Row> = { name: 'name', title: what[0]!.toUpperCase() + what.slice(1), by: (row) => row.metric ?? row.protocol ?? row.sender ?? '\uffff', cell: (row) => <Name row={row} /> };
  const user: Column<Row> = { name: 'user', title: 'User', by: (row) => row.user ?? '', cell: (row) => row.user ?? '', width: '140px' };
  const late = number('late', 'Late', (row) => row.lateSamples, count, '92px');
  const quantiles = [age('p50', 'Age p50'), age('p90', 'p90'), age('p99', 'p99'), age('max', 'Oldest')];
  if (what !== 'protocol') {
    const share = number('share', 'Of all late', (row) => row.lateSamples / Math.max(1, lateInAll), (_, row) => shareText(row.lateSamples, lateInAll), '104px');
    return [name, ...(what === 'sender' ? [user] : []), late, share, ...quantiles];
  }
  return [
    name,
    number('samples', 'Samples', (row) => row.samples ?? 0, count, '100px'),
    late,
    number('share', 'Share', (row) => row.lateSamples / Math.max(1, row.samples ?? 0), (_, row) => shareText(row.lateSamples, row.samples ?? 0)),
    ...quantiles,
    number('delay99', '99 % after', (row) => row.delayMs?.p99 ?? 0, ageText, '104px'),
    number('delay999', '99.9 % after', (row) => row.delayMs?.p999 ?? 0, ageText, '118px'),
  ];
}

const DEFAULT_ORDER = '-late';

export const ORDER = orderCheck(() => columnsOf(by.value, 0), DEFAULT_ORDER);

function List() {
  const data = rows.value;
  const shown = useMemo<Row[]>(() => {
    if (data === null) return [];
    const others = data.others && data.others.lateSamples > 0 ? [{ ...data.others, isOthers: true }] : [];
    return [...data.rows, ...others];
  }, [data]);
  const columns = useMemo(() => columnsOf(by.value, shown.reduce((sum, row) => sum + row.lateSamples, 0)), [by.value, shown, span.value, params.value]);
  // What came last may be about something else, until the next answer.
  if (data === null || data.by !== by.value) return null;
  if (shown.length === 0) return <p class="hint">None in this time.</p>;
  return (
    <>
      <Table label={`Late samples by ${by.value}`} columns={columns} rows={shown} order={DEFAULT_ORDER}
        id={(row) => (row.isOthers ? 'others' : JSON.stringify([row.protocol, row.metric, row.sender, row.user]))} />
      <p class="hint">
        {by.value === 'protocol' ? 'Delays: after how long 99 % and 99.9 % of the samples have come, where those in order come at once.'
          : `Since ${secondText(Math.max(data.rowsStart, data.countedSince))}${protocol.value ? ', of all protocols' : ''}. Only those with most late samples have rows; samples in order are not counted by ${by.value}.`}
      </p>
    </>
  );
}

export function Rows() {
  return (
    <section class="card list" aria-label="Where late samples come from">
      <div class="tabs"><Tabs label="Rows" param="by" tabs={TABS} chosen={by.value} also={{ order: null }} /></div>
      {by.value !== 'protocol' && rowsFailure.value && (
        <ErrorBox failure={rowsFailure.value} retry={() => void ask()}>
          {rowsFailure.value.status === 403 && <p>Log in as a user that may see them, or ask for the permission.</p>}
        </ErrorBox>
      )}
      <TabPanel param="by" chosen={by.value}><List /></TabPanel>
    </section>
  );
}
