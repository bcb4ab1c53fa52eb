// A heat map: amounts by time and band, as colours. The pointer or the arrow keys choose a cell, of
// which the line below tells the value; the page says in which words. Where the page lets the span
// change, dragging zooms, and so do + and -; a double click and 0 go back.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { zone } from '../clock';
import { isDark } from '../theme';
import { draw, NO_CELL, Places, type Cell, type HeatGrid } from './heatgrid';
import { isShortcut, spanOfKey } from './keys';
import { scaleOf, tone } from './palette';
import type { Span } from './span';

interface Properties {
  label: string;
  grid: HeatGrid;
  height: number;
  cell: Cell;
  onCell: (cell: Cell) => void;
  /** What dragging and keys do; without it the span is fixed. */
  onSpan?: (span: Span) => void;
  onBack?: () => void;
  /** What is said of the chosen cell; null where none is chosen. */
  said: string | null;
  /** What is said instead. */
  hint: string;
  /** An amount as a text. */
  format: (value: number) => string;
  /** What the colours are about. */
  unit: string;
}

/** Arrows move, Home and End go to the first and the last column; null where the key does nothing. */
function moved({ key }: KeyboardEvent, { times, bands }: HeatGrid, cell: Cell): Cell | null {
  const across = { ArrowLeft: -1, ArrowRight: 1, Home: -times.length, End: times.length }[key];
  const up = { ArrowUp: 1, ArrowDown: -1 }[key];
  if (key === 'Escape') return NO_CELL;
  if ((across === undefined && up === undefined) || times.length === 0) return null;
  // The first key only enters the map, at the newest column and the lowest band.
  const column = times.indexOf(cell.time ?? NaN);
  const isIn = column >= 0 && cell.band !== null;
  const next = column < 0 ? times.length - 1 : Math.max(0, Math.min(times.length - 1, column + (across ?? 0)));
  const band = (cell.band ?? 0) + (isIn ? up ?? 0 : 0);
  return { time: times[next]!, band: Math.max(0, Math.min(bands.length - 1, band)) };
}

/** What is dragged over, in pixels; null while nothing is. */
type Drag = { from: number; to: number } | null;

/** The times of what was dragged over; null where it was hardly anything. */
function dragged(drag: Drag, places: Places): Span | null {
  if (!drag || Math.abs(drag.to - drag.from) < 4) return null;
  const { times, step_ms } = places.grid;
  const [left, right] = [drag.from, drag.to].map((x) => Math.max(0, Math.min(times.length, places.column(x)))).sort((a, b) => a - b);
  const at = (place: number) => times[0]! + (place - 0.5) * step_ms;
  return left! < right! ? { from_ms: at(left!), to_ms: at(right!) } : null;
}

function boxStyle([x, y, width, height]: number[]) {
  return { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` };
}

function Plot({ label, grid, height, cell, onCell, onSpan, onBack }: Properties) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [drag, setDrag] = useState<Drag>(null);
  useEffect(() => {
    const box = canvas.current!.parentElement!;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  const [dark, clock] = [isDark.value, zone.value];
  useLayoutEffect(() => draw(canvas.current!, grid, dark), [grid, width, height, dark, clock]);
  const places = new Places(grid, width, height);
  const box = places.box(cell);
  const point = (event: PointerEvent & { currentTarget: HTMLElement }) => {
    const { left, top } = event.currentTarget.getBoundingClientRect();
    const x = event.clientX - left;
    onCell(places.cell(x, event.clientY - top));
    if (event.type === 'pointerdown' && event.button === 0 && onSpan && event.pointerType === 'mouse') {
      event.currentTarget.setPointerCapture(event.pointerId);
      setDrag({ from: x, to: x });
    } else if (drag) setDrag({ ...drag, to: x });
  };
  const release = () => {
    const wanted = dragged(drag, places);
    setDrag(null);
    if (wanted) onSpan?.(wanted);
  };
  const leave = () => onCell(NO_CELL);
  const key = (event: KeyboardEvent) => {
    if (isShortcut(event)) return;
    const next = moved(event, grid, cell);
    const wanted = onSpan && spanOfKey(event.key);
    if (next) onCell(next);
    else if (event.key === '0' && onBack) onBack();
    else if (wanted) onSpan(wanted);
    else return;
    event.preventDefault();
  };
  return (
    <div class="heatmap" tabIndex={0} role="application" aria-label={`${label}; arrow keys show values`} style={{ height: `${height}px` }}
      onPointerMove={point} onPointerDown={point} onPointerUp={release} onPointerCancel={() => setDrag(null)} onPointerLeave={leave}
      onDblClick={onBack} onBlur={leave} onKeyDown={key}>
      <canvas ref={canvas} aria-hidden="true" />
      {box && <div class="chosen" style={boxStyle(box)} />}
      {drag && <div class="dragged" style={boxStyle([Math.min(drag.from, drag.to), 0, Math.abs(drag.to - drag.from), places.map_px])} />}
    </div>
  );
}

function Legend({ grid, format, unit }: Properties) {
  const dark = isDark.value;
  const scale = useMemo(() => scaleOf(grid.cells), [grid]);
  const hasZeros = useMemo(() => grid.cells.some((column) => column.includes(0)), [grid]);
  const tones = Array.from({ length: 9 }, (_, at) => tone(at / 8, dark)).join(', ');
  return (
    <p class="scale">
      {hasZeros && <><span class="zero" /><span>0</span></>}
      {scale && (
        <>
          <span>{scale.isCut && '\u2264\u202f'}{format(scale.min)}</span>
          <span class="tones" style={{ background: `linear-gradient(to right, ${tones})` }} />
          <span>{format(scale.max)}</span>
        </>
      )}
      <span class="hint">{unit}</span>
    </p>
  );
}

export function HeatMap(properties: Properties) {
  return (
    <>
      <Plot {...properties} />
      <p class="hint said" aria-live="polite">{properties.said ?? properties.hint}</p>
      <Legend {...properties} />
    </>
  );
}
