// A table of any number of rows: only those in sight are drawn. Rows have one height. Clicking
// the head of a column sorts; the keys of the browser scroll, since the table takes the focus. Where
// it is wider than the window, the first column stays in sight, and a line says that there are more.

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useMemo, useState } from 'preact/hooks';
import { params, setParams } from '../route';
import { broken, type Check } from './broken';
import { useWindow } from './window';

export interface Column<Row> {
  /** Names the column, for sorting and the address. */
  name: string;
  title: string;
  /** The title is for screen readers only. */
  isTitleHidden?: boolean;
  /** What a cell shows. */
  cell: (row: Row) => ComponentChildren;
  /** What is sorted by; without it the column is not sorted. */
  by?: (row: Row) => number | string;
  /** Numbers stand at the right. */
  isNumber?: boolean;
  /** A width of CSS; without it the column takes what is left. */
  width?: string;
}

interface Order {
  name: string;
  isDescending: boolean;
}

interface Properties<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  /** Identifies a row. */
  id: (row: Row, index: number) => string | number;
  /** The order, `name` or `-name` if it is descending, of which the address keeps another; without it the table does. */
  order?: string;
  /** The height of a row, which the page's CSS gives its cells. */
  rowPx?: number;
}

const ROW_PX = 30;
/** The width of a column without one, on narrow screens. */
const LEAST_PX = 128;

/** The least width of a table on narrow screens. */
function leastWidth<Row>(columns: Column<Row>[]): number {
  return columns.reduce((sum, { width }) => sum + (width?.endsWith('px') ? parseInt(width) : LEAST_PX), 0);
}

// Made once: a table may have tens of thousands of names.
const names = new Intl.Collator('en', { numeric: true });

/** NaN is last in either order. */
function compare(a: number | string, b: number | string, sign: number): number {
  if (typeof a !== 'number' || typeof b !== 'number') return sign * names.compare(String(a), String(b));
  return Number(Number.isNaN(a)) - Number(Number.isNaN(b)) || (a === b ? 0 : sign * (a - b));
}

function sorted<Row>(rows: Row[], columns: Column<Row>[], order: Order | undefined): Row[] {
  const by = columns.find((column) => column.name === order?.name)?.by;
  if (!by) return rows;
  const keyed = rows.map((row) => [by(row), row] as const);
  const sign = order?.isDescending ? -1 : 1;
  return keyed.sort(([a], [b]) => compare(a, b, sign)).map(([, row]) => row);
}

function orderOf(text: string): Order {
  return { name: text.replace(/^-/, ''), isDescending: text.startsWith('-') };
}

/** The column of an order; undefined where no column is sorted by it. */
function columnOf<Row>(columns: Column<Row>[], order: Order): Column<Row> | undefined {
  return columns.find(({ name, by }) => by && name === order.name);
}

/** The order of the address, or else the `initial` one. */
function orderIn<Row>(columns: Column<Row>[], initial: string): Order {
  const named = orderOf(params.value.get('order') ?? '');
  return columnOf(columns, named) ? named : orderOf(initial);
}

/** Says that the order of the address is none of these columns, so that the table has its `initial` one. */
export function orderCheck<Row>(columns: () => Column<Row>[], initial: string): Check {
  return () => {
    const all = columns();
    const { name, isDescending } = orderOf(initial);
    const title = all.find((column) => column.name === name)?.title ?? name;
    const wanted = `one of ${all.filter(({ by }) => by).map((column) => column.name).join(', ')}, with - before it to descend`;
    return broken('order', (text) => columnOf(all, orderOf(text)) !== undefined, wanted, `rows are sorted by ${title}${isDescending ? ', descending' : ''}`);
  };
}

export function Table<Row>({ label, columns, rows, id, order: initial, rowPx = ROW_PX }: Properties<Row>) {
  const [own, setOwn] = useState<Order>();
  const order = initial === undefined ? own : orderIn(columns, initial);
  const shown = useMemo(() => sorted(rows, columns, order), [rows, columns, order?.name, order?.isDescending]);
  const { box, first, last, onScroll } = useWindow(shown.length, rowPx);
  const [isCut, setCut] = useState(false);
  useLayoutEffect(() => {
    const look = () => setCut(box.current!.scrollWidth > box.current!.clientWidth + 1);
    look();
    const observer = new ResizeObserver(look);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, [columns]);
  const click = (column: Column<Row>) => {
    const isDescending = order?.name === column.name ? !order.isDescending : column.isNumber === true;
    if (initial === undefined) return setOwn({ name: column.name, isDescending });
    const text = `${isDescending ? '-' : ''}${column.name}`;
    setParams({ order: text === initial ? null : text }, true);
  };
  return (
    <>
      {isCut && <p class="hint sideways">Scroll the table sideways for all {columns.length} columns.</p>}
      <div class={`table ${isCut ? 'cut' : ''}`} ref={box} tabIndex={0} onScroll={onScroll} role="region" aria-label={label}>
        <table aria-rowcount={rows.length + 1} style={{ '--least': `${leastWidth(columns)}px` }}>
          <colgroup>{columns.map((column) => <col key={column.name} style={{ width: column.width }} />)}</colgroup>
          <thead>
            <tr aria-rowindex={1}>
              {columns.map((column) => {
                const isBy = order?.name === column.name;
                const direction = isBy ? (order?.isDescending ? 'descending' : 'ascending') : undefined;
                return (
                  <th key={column.name} scope="col" class={column.isNumber ? 'number' : ''} aria-sort={direction}>
                    {column.by
                      ? <button type="button" onClick={() => click(column)}>{column.title}<span aria-hidden="true">{isBy ? (order?.isDescending ? ' ↓' : ' ↑') : ''}</span></button>
                      : <span class={column.isTitleHidden ? 'hidden' : ''}>{column.title}</span>}
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {first > 0 && <tr aria-hidden="true" style={{ height: `${first * rowPx}px` }} />}
            {shown.slice(first, last).map((row, at) => (
              <tr key={id(row, first + at)} aria-rowindex={first + at + 2}>
                {columns.map((column) => <td key={column.name} class={column.isNumber ? 'number' : ''}>{column.cell(row)}</td>)}
              </tr>
            ))}
            {last < shown.length && <tr aria-hidden="true" style={{ height: `${(shown.length - last) * rowPx}px` }} />}
          </tbody>
        </table>
      </div>
    </>
  );
}
