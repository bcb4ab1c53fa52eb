// The active alerts, a row each, and all that is known of one of them.

import { useEffect, useRef } from 'preact/hooks';
import { durationText, timeText } from '../../clock';
import { FigureList, type Figure } from '../../components/figures';
import type { Column } from '../../components/table';
import { When } from '../../components/when';
import { short, UNKNOWN } from '../../format';
import { href, params, setParams } from '../../route';
import { nameOf, restOf, saidBy, type Alert } from './alert';

const sinceOf = ({ activeAt }: Alert) => Date.parse(activeAt);
const valueOf = ({ value }: Alert) => (value === '+Inf' ? Infinity : value === '-Inf' ? -Infinity : Number(value));
const valueText = (alert: Alert) => (alert.value === '' ? UNKNOWN : short(valueOf(alert)));

/** When it began, and for how long it has been active at `at_ms`. */
function sinceText(alert: Alert, at_ms: number): string {
  const since_ms = sinceOf(alert);
  if (Number.isNaN(since_ms)) return UNKNOWN;
  return `${timeText(since_ms)}, for ${durationText(Math.max(0, Math.floor((at_ms - since_ms) / 1000) * 1000))}`;
}

function AlertLink({ alert }: { alert: Alert }) {
  const next = new URLSearchParams(params.value);
  next.set('alert', alert.id);
  return <a href={href('alerts', next)} title={alert.id}>{nameOf(alert) || UNKNOWN}</a>;
}

/** Those that fire come first. */
const stateOrder = ({ state }: Alert) => (state === 'firing' ? 0 : 1);

export const COLUMNS: Column<Alert>[] = [
  { name: 'alert', title: 'Alert', by: nameOf, cell: (row) => <AlertLink alert={row} /> },
  { name: 'state', title: 'State', by: stateOrder, cell: (row) => <span class={row.state === 'firing' ? 'bad' : 'warn'}>{row.state}</span>, width: '84px' },
  { name: 'since', title: 'Since', by: sinceOf, cell: (row) => <When ms={sinceOf(row)} />, width: '100px' },
  { name: 'value', title: 'Value', by: valueOf, cell: valueText, isNumber: true, width: '96px' },
  { name: 'labels', title: 'Labels', by: restOf, cell: (row) => <span title={restOf(row)}>{restOf(row)}</span> },
  { name: 'says', title: 'Says', by: saidBy, cell: (row) => <span title={saidBy(row)}>{saidBy(row)}</span> },
];

export function One({ alert, at_ms }: { alert: Alert; at_ms: number }) {
  const button = useRef<HTMLButtonElement>(null);
  // The keys go on here, and then in the table below.
  useEffect(() => button.current?.focus(), [alert.id]);
  const close = () => {
    setParams({ alert: null });
    document.querySelector<HTMLElement>('.alerts .table')?.focus();
  };
  const facts: Figure[] = [
    ['state', alert.state, alert.state === 'firing'],
    ['active since', sinceText(alert, at_ms)],
    ...(alert.keepFiringSince === null ? [] : [['no result since', timeText(Date.parse(alert.keepFiringSince))] as Figure]),
    ['value', valueText(alert)],
    ['labels', restOf(alert) || 'none'],
    ...Object.entries(alert.annotations).map(([name, text]): Figure => [name, text]),
  ];
  return (
    <section class="card one" aria-labelledby="one" onKeyDown={(event) => { if (event.key === 'Escape') close(); }}>
      <div class="row">
        <h2 id="one">{nameOf(alert)}</h2>
        <span class="gap" />
        <a class="button" href={href('rules', { filter: nameOf(alert), only: 'alerting' })}>Rule</a>
        <button type="button" ref={button} onClick={close}>Close</button>
      </div>
      <FigureList kind="facts" all={facts} />
    </section>
  );
}
