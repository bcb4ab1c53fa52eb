// Lines over time, by uPlot. Dragging zooms, dragging with Shift pans, a double click goes back;
// the page decides what these do. With the focus: + and - zoom, arrows pan, 0 goes back. The pointer
// shows the value of the line that is nearest to it.

import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { timeText, zone } from '../clock';
import { short } from '../format';
import { colour, dash, isDark } from '../theme';
import { timeTicks } from './axis';
import { isShortcut, spanOfKey } from './keys';
import { Swatch } from './swatch';
import type { Span } from './span';

/** One line. */
export interface Line {
  label: string;
  /** Gives it its colour and dashes. */
  index: number;
  values: (number | null)[];
  isHidden: boolean;
  /** Marks of this shape at each value instead of a line. */
  marks?: Mark;
}

export type Mark = 'diamond' | 'cross';

/** How lines are drawn. */
export interface Look {
  stacked: boolean;
  zero: boolean;
  log: boolean;
  points: boolean;
}

interface Properties {
  label: string;
  /** Milliseconds. */
  times: number[];
  lines: Line[];
  span: Span;
  look: Look;
  height: number;
  /** The line that is shown by itself; -1 is none. */
  focus: number;
  /** What dragging and keys do; without it the span is fixed. */
  onSpan?: (span: Span) => void;
  onBack?: () => void;
  /** The place in `times` at the cursor; null when it has left. */
  onCursor: (at: number | null) => void;
  /** A value of the axis as a text. */
  format?: (value: number) => string;
  /** Ticks of the axis of values, ascending, where round numbers are not the right ones. */
  ticks?: number[];
  /** The places of two lines, the upper one first, between which the area is filled. */
  area?: [number, number];
}

/** What is drawn of the lines: sums where they are stacked; nothing where a logarithm has none. */
function drawn({ times, lines, look }: Properties): uPlot.AlignedData {
  const sums = new Float64Array(times.length);
  const isEmpty = times.map((_, at) => look.stacked && lines.every((line) => line.isHidden || line.values[at] == null));
  const columns = lines.map((line) => {
    if (look.stacked) {
      if (line.isHidden) return line.values;
      return line.values.map((value, at) => (isEmpty[at] ? null : (sums[at] = (sums[at] ?? 0) + (value !== null && Number.isFinite(value) ? value : 0))));
    }
    return line.values.map((value) => (value === null || !Number.isFinite(value) || (look.log && value <= 0) ? null : value));
  });
  return [times, ...columns] as uPlot.AlignedData;
}

const MARK_PX = 4.5;

/** Marks that are told apart without their colour. */
function marksOf(shape: Mark): uPlot.Series.Points.PathBuilder {
  return (plot, at, first, last) => {
    const path = new Path2D();
    const size = MARK_PX * uPlot.pxRatio;
    const [times, values] = [plot.data[0], plot.data[at]!];
    for (let place = first; place <= last; place++) {
      const value = values[place];
      if (value == null) continue;
      const [x, y] = [plot.valToPos(times[place]!, 'x', true), plot.valToPos(value, 'y', true)];
      if (shape === 'diamond') {
        path.moveTo(x, y - size);
        path.lineTo(x + size, y);
        path.lineTo(x, y + size);
        path.lineTo(x - size, y);
        path.closePath();
      } else {
        path.moveTo(x - size, y - size);
        path.lineTo(x + size, y + size);
        path.moveTo(x + size, y - size);
        path.lineTo(x - size, y + size);
      }
    }
    return { stroke: path, fill: path };
  };
}

/** Values without a neighbour, which no line reaches: they are points in any case. */
const isolated: uPlot.Series.Points.Filter = (plot, at, isShown) => {
  if (isShown) return null;
  const values = plot.data[at]!;
  const [first, last] = plot.series[0]!.idxs!;
  const found: number[] = [];
  for (let place = first; place <= last; place++) {
    if (values[place] != null && values[place - 1] == null && values[place + 1] == null) found.push(place);
  }
  return found.length > 0 ? found : null;
};

function seriesOf({ lines, look }: Properties, dark: boolean): uPlot.Series[] {
  const made = lines.map((line): uPlot.Series => {
    const stroke = colour(line.index, dark);
    const shared = { label: line.label, show: !line.isHidden, stroke };
    if (line.marks) return { ...shared, paths: () => null, points: { show: true, size: 2 * MARK_PX, width: 2, stroke, fill: `${stroke}66`, paths: marksOf(line.marks) } };
    return {
      ...shared,
      width: 1.5,
      dash: dash(line.index),
      fill: look.stacked ? `${stroke}55` : undefined,
      points: { show: look.points, filter: isolated, fill: look.points ? undefined : stroke, size: 4 },
    };
  });
  return [{}, ...made];
}

/** Between two stacked lines the area belongs to the upper one. */
function bandsOf({ lines, look, area }: Properties, dark: boolean): uPlot.Band[] {
  if (area) return [{ series: [area[0] + 1, area[1] + 1], fill: `${colour(lines[area[0]]!.index, dark)}2e` }];
  if (!look.stacked) return [];
  const shown = lines.flatMap((line, at) => (line.isHidden ? [] : [at + 1]));
  return shown.slice(1).map((at, below) => ({ series: [at, shown[below]!] }));
}

/** The range of the values' axis. */
function rangeOf({ look, ticks }: Properties): uPlot.Scale.Range {
  return (_, min, max) => {
    if (min === null || max === null || !Number.isFinite(min) || !Number.isFinite(max)) return look.log ? [1, 10] : [0, 1];
    if (ticks) return [ticks.filter((tick) => tick < min).at(-1) ?? min, ticks.find((tick) => tick > max) ?? max * 1.1];
    if (look.log) return uPlot.rangeLog(min, max, 10, false);
    const from = look.zero || look.stacked ? Math.min(0, min) : min;
    return uPlot.rangeNum(from, max, 0.08, look.zero || look.stacked);
  };
}

/** Dragging with Shift moves the span. */
function panning(latest: () => Properties): uPlot.Cursor.MouseListenerFactory {
  return (plot, _, handler) => (event: MouseEvent) => {
    const { span, onSpan } = latest();
    if (!event.shiftKey || !onSpan) return handler(event);
    const ms = (span.to_ms - span.from_ms) / plot.over.clientWidth;
    const moved = (now: MouseEvent) => (event.clientX - now.clientX) * ms;
    const move = (now: MouseEvent) => plot.setScale('x', { min: span.from_ms + moved(now), max: span.to_ms + moved(now) });
    const end = (now: MouseEvent) => {
      removeEventListener('mousemove', move);
      removeEventListener('mouseup', end);
      if (Math.abs(now.clientX - event.clientX) > 3) onSpan({ from_ms: span.from_ms + moved(now), to_ms: span.to_ms + moved(now) });
    };
    addEventListener('mousemove', move);
    addEventListener('mouseup', end);
    return null;
  };
}

/** Given ticks that are drawn at most. */
const TICKS_MAX = 7;

/** The ticks that the page wants, if it does. */
function ticksOf({ ticks }: Properties): Partial<uPlot.Axis> {
  if (!ticks) return {};
  const splits = (_: uPlot, __: number, min: number, max: number) => {
    const found = ticks.filter((tick) => tick >= min && tick <= max);
    const every = Math.ceil(found.length / TICKS_MAX);
    return found.filter((_, at) => at % every === 0);
  };
  return { splits, filter: (_, splits) => splits };
}

/** What is said beside the pointer. */
interface Nearest {
  index: number;
  label: string;
  value: string;
  time: string;
  x: number;
  y: number;
  isRight: boolean;
}

const TIP_PX = 14;

/** The line whose value at the cursor is nearest to it; null without one. */
function nearest(plot: uPlot, { times, lines, format }: Properties): Nearest | null {
  const { idx: at, left = -1, top = -1 } = plot.cursor;
  if (at == null || left < 0 || top < 0) return null;
  let found: Line | null = null;
  let least = Infinity;
  lines.forEach((line, place) => {
    const drawn = plot.data[place + 1]?.[at];
    if (line.isHidden || drawn == null) return;
    const distance = Math.abs(plot.valToPos(drawn, 'y') - top);
    if (distance < least) [found, least] = [line, distance];
  });
  if (found === null || times[at] === undefined) return null;
  const { index, label, values } = found as Line;
  const isRight = left > plot.over.clientWidth / 2;
  return {
    index, label, value: format ? format(values[at]!) : String(values[at]), time: timeText(times[at]), isRight,
    x: plot.over.offsetLeft + left + (isRight ? -TIP_PX : TIP_PX), y: plot.over.offsetTop + Math.max(0, top - TIP_PX),
  };
}

function Tip({ shown }: { shown: Signal<Nearest | null> }) {
  if (shown.value === null) return null;
  const { index, label, value, time, x, y, isRight } = shown.value;
  return <div class={`tip ${isRight ? 'left' : ''}`} style={{ left: `${x}px`, top: `${y}px` }} aria-hidden="true"><Swatch index={index} /> {label} <b>{value}</b><time>{time}</time></div>;
}

function options(given: Properties, latest: () => Properties, tip: Signal<Nearest | null>, width: number, dark: boolean): uPlot.Options {
  const grid = { stroke: dark ? '#ffffff14' : '#00000012', width: 1 };
  const axis = { stroke: dark ? '#aab4bb' : '#55606a', grid, ticks: { ...grid, size: 4 }, font: '12px system-ui, sans-serif' };
  return {
    width,
    height: given.height,
    ms: 1,
    tzDate: (ms) => (zone.value === 'utc' ? uPlot.tzDate(new Date(ms), 'Etc/UTC') : new Date(ms)),
    series: seriesOf(given, dark),
    bands: bandsOf(given, dark),
    scales: {
      x: { time: true, range: () => [latest().span.from_ms, latest().span.to_ms] },
      y: { distr: given.look.log ? 3 : 1, range: rangeOf(given) },
    },
    axes: [
      { ...axis, space: 90, size: 44, values: (_, ticks, __, ___, step) => timeTicks(ticks, step) },
      { ...axis, ...ticksOf(given), size: (_, values) => 16 + 7 * Math.max(4, ...(values ?? []).map((text) => text?.length ?? 0)), values: (_, ticks) => ticks.map((value) => (value === null ? '' : (given.format ?? short)(value))) },
    ],
    legend: { show: false },
    focus: { alpha: 0.25 },
    cursor: {
      drag: { x: given.onSpan !== undefined, y: false, setScale: false },
      points: { size: 6, show: given.lines.length <= 50 },
      bind: { mousedown: panning(latest), dblclick: () => () => { latest().onBack?.(); return null; } },
    },
    hooks: {
      setCursor: [(plot) => {
        latest().onCursor(plot.cursor.idx ?? null);
        tip.value = nearest(plot, latest());
      }],
      setSelect: [(plot) => {
        if (plot.select.width < 4) return;
        const at = (x: number) => plot.posToVal(x, 'x');
        const span = { from_ms: at(plot.select.left), to_ms: at(plot.select.left + plot.select.width) };
        plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        if (span.to_ms - span.from_ms >= 10) latest().onSpan?.(span);
      }],
    },
  };
}

function key(event: KeyboardEvent, { onSpan, onBack }: Properties): void {
  if (!onSpan || isShortcut(event)) return;
  const wanted = spanOfKey(event.key);
  if (event.key === '0') onBack?.();
  else if (wanted) onSpan(wanted);
  else return;
  event.preventDefault();
}

export function Chart(properties: Properties) {
  const { times, lines, span, look, height, focus, area } = properties;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(properties);
  latest.current = properties;
  const tip = useSignal<Nearest | null>(null);
  const dark = isDark.value;
  const inUtc = zone.value;
  // Anything but data and span changes the options, of which uPlot makes a new chart.
  const shape = JSON.stringify([look, height, dark, inUtc, lines.map((line) => [line.index, line.isHidden, line.marks]), area]);
  useLayoutEffect(() => {
    const element = box.current!;
    const made = new uPlot(options(latest.current, () => latest.current, tip, element.clientWidth, dark), drawn(latest.current), element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);
  const first = useRef(true);
  useEffect(() => {
    if (first.current) { first.current = false; return; }
    plot.current?.setData(drawn(latest.current));
  }, [times, lines, span.from_ms, span.to_ms]);
  useEffect(() => { plot.current?.setSeries(focus < 0 ? null : focus + 1, { focus: true }); }, [focus]);
  return (
    <div class="chart" ref={box} tabIndex={0} role="img" aria-label={properties.label}
      data-from={span.from_ms} data-to={span.to_ms}
      style={{ minHeight: `${height}px` }} onKeyDown={(event) => key(event, latest.current)}
      onMouseLeave={() => { tip.value = null; properties.onCursor(null); }}>
      <Tip shown={tip} />
    </div>
  );
}
