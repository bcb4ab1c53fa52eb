// Late samples by protocol, metric, sender or the label that the server counts by.

import { useMemo } from 'preact/hooks';
import { durationText, parseDuration, secondText } from '../../clock';
import { ErrorBox } from '../../components/notice';
import { orderCheck, Table, type Column } from '../../components/table';
import { TabPanel, Tabs } from '../../components/tabs';
import { count, seriesText, UNKNOWN } from '../../format';
import { href, params } from '../../route';
import { ask, label, rows, rowsFailure, type Row } from './ask';
import { by, protocol, span, type By } from './state';
import { ageText, roundUp, shareText } from './text';

const TABS: [By, string][] = [['protocol', 'By protocol'], ['metric', 'By metric'], ['sender', 'By sender'], ['label', 'By label']];
const OTHERS: Record<By, string> = { protocol: '', metric: 'other metrics', sender: 'other senders', label: 'other values' };
const YEAR_MS = 31_536_000_000;

/** The Query page with the series, over a time in which late samples lie if they are not older than a year. */
function queryOf(series: Record<string, string>, max_ms: number): string {
  const range_ms = Math.min(YEAR_MS, parseDuration(roundUp(max_ms + (parseDuration(span.value) ?? 0))) ?? YEAR_MS);
  return href('query', { q: seriesText(series), range: durationText(range_ms) });
}

function Name({ row }: { row: Row }) {
  if (row.isOthers) return <em>{OTHERS[by.value]}</em>;
  if (row.metric !== undefined) {
    return row.metric === '' ? <em>no name</em> : <a href={queryOf({ __name__: row.metric }, row.lateAgeMs.max)} title={`Query ${row.metric}`}>{row.metric}</a>;
  }
  if (row.protocol !== undefined) {
    const next = new URLSearchParams(params.value);
    next.set('protocol', row.protocol);
    return <a href={href('late', next)} title="Show this protocol alone">{row.protocol}</a>;
  }
  if (row.value !== undefined) {
    const name = rows.value?.label ?? '';
    return row.value === '' ? <em>without {name}</em> : <a href={queryOf({ [name]: row.value }, row.lateAgeMs.max)} title={`Query ${name}="${row.value}"`}>{row.value}</a>;
  }
  return <span title={row.sender}>{row.sender}</span>;
}

/** The heading of names; a label is shown as it is written. */
function titleOf(what: By): string {
  return what === 'label' ? label.value ?? 'Value' : what[0]!.toUpperCase() + what.slice(1);
}

function columnsOf(what: By, lateInAll: number): Column<Row>[] {
  const number = (name: string, title: string, value: (row: Row) => number, show: (value: number, row: Row) => string, width = '84px'): Column<Row> =>
    ({ name, title, by: value, cell: (row) => show(value(row), row), isNumber: true, width });
  const age = (name: 'p50' | 'p90' | 'p99' | 'max', title: string) =>
    number(name, title, (row) => row.lateAgeMs[name], (ms, row) => (row.lateSamples > 0 ? ageText(ms) : UNKNOWN));
  const name: Column<Row> = { name: 'name', title: titleOf(what), by: (row) => row.metric ?? row.protocol ?? row.sender ?? row.value ?? '\uffff', cell: (row) => <Name row={row} /> };
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
        id={(row) => (row.isOthers ? 'others' : JSON.stringify([row.protocol, row.metric, row.sender, row.user, row.value]))} />
      <p class="hint">
        {by.value === 'protocol' ? 'Delays: after how long 99 % and 99.9 % of the samples have come, where those in order come at once.'
          : `Since ${secondText(Math.max(data.rowsStart, data.countedSince))}${protocol.value ? ', of all protocols' : ''}. Only those with most late samples have rows; samples in order are not counted by ${by.value}.${by.value === 'label' ? ' The label is that which a series has when its sample comes.' : ''}`}
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
          {by.value === 'label' && rowsFailure.value.status === 400 && <p>Choose one: <code>CONFIG SET lateness-label NAME</code>, or <code>--lateness-label NAME</code> at the start.</p>}
          {rowsFailure.value.status === 403 && <p>Log in as a user that may see them, or ask for the permission.</p>}
        </ErrorBox>
      )}
      <TabPanel param="by" chosen={by.value}><List /></TabPanel>
    </section>
  );
}
