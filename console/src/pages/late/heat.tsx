// The heat map: when samples arrived against how old they were. The pointer or the arrow keys
// choose a cell, of which the line below tells the values.

import { computed, signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { clockText, zone } from '../../clock';
import { timeTicks } from '../../components/axis';
import { Empty } from '../../components/notice';
import { count } from '../../format';
import { setParams } from '../../route';
import { isDark } from '../../theme';
import { grid, type Grid } from './grid';
import { minuteText, moveMinute } from './minutes';
import { part, tone } from './palette';
import { ages, minute, type Ages } from './state';

const LEFT_PX = 64;
const BOTTOM_PX = 36;
const MAP_PX = 300;
const TICKS_MS = [60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000];

/** The band of the chosen cell. */
const band = signal<number | null>(null);

const said = computed<string | null>(() => {
  const { starts, bands, counts } = grid.value;
  const column = starts.indexOf(minute.value ?? NaN);
  const at = band.value;
  if (column < 0) return null;
  if (at === null || !bands[at]) return minuteText.value;
  const noun = ages.value === 'late' ? 'late samples' : 'samples';
  return `${clockText(starts[column]!).slice(0, 5)}, ${bands[at].text}: ${count(counts[column]?.[at] ?? 0)} ${noun}`;
});

interface Sizes { width: number; height: number }

function sizes(box: HTMLElement, { starts, bands }: Grid): Sizes {
  return { width: Math.max(1, box.clientWidth - LEFT_PX) / Math.max(1, starts.length), height: MAP_PX / bands.length };
}

function drawCells(context: CanvasRenderingContext2D, { counts, max }: Grid, { width, height }: Sizes, dark: boolean): void {
  const gap = width > 5 ? 1 : 0;
  counts.forEach((row, column) => row.forEach((samples, at) => {
    if (samples === 0) return;
    context.fillStyle = tone(part(samples, max), dark);
    context.fillRect(LEFT_PX + column * width, MAP_PX - (at + 1) * height, Math.max(1, width - gap), height - 1);
  }));
}

function drawAxes(context: CanvasRenderingContext2D, { starts, bands }: Grid, { width, height }: Sizes, text: string, line: string): void {
  context.strokeStyle = line;
  context.strokeRect(LEFT_PX - 0.5, 0.5, width * starts.length, MAP_PX - 1);
  context.fillStyle = text;
  context.font = '12px system-ui, sans-serif';
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  const every = Math.ceil(15 / height);
  bands.forEach(({ edge }, at) => {
    const y = Math.min(MAP_PX - 6, MAP_PX - at * height);
    if (at % every === 0) context.fillText(edge, LEFT_PX - 6, y);
  });
  const step = TICKS_MS.find((ms) => (ms / 60_000) * width >= 60) ?? 3_600_000;
  const ticks = starts.filter((ms) => ms % step === 0);
  context.textBaseline = 'top';
  context.textAlign = 'center';
  timeTicks(ticks, step).forEach((tick, at) => {
    const x = LEFT_PX + (starts.indexOf(ticks[at]!) + 0.5) * width;
    tick.split('\n').forEach((row, below) => context.fillText(row, x, MAP_PX + 5 + 14 * below));
  });
}

function drawCursor(context: CanvasRenderingContext2D, shown: Grid, { width, height }: Sizes, text: string): void {
  const column = shown.starts.indexOf(minute.peek() ?? NaN);
  if (column < 0) return;
  const at = band.peek();
  context.strokeStyle = text;
  context.lineWidth = at === null ? 1 : 2;
  const x = LEFT_PX + column * width;
  if (at === null) context.strokeRect(x - 0.5, 0.5, width, MAP_PX - 1);
  else context.strokeRect(x - 1, MAP_PX - (at + 1) * height - 1, width + 1, height + 1);
}

function draw(canvas: HTMLCanvasElement, shown: Grid, dark: boolean): void {
  const box = canvas.parentElement!;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(box.clientWidth * ratio);
  canvas.height = Math.round((MAP_PX + BOTTOM_PX) * ratio);
  const context = canvas.getContext('2d')!;
  context.scale(ratio, ratio);
  const style = getComputedStyle(box);
  const [text, faint, line] = ['--text', '--faint', '--line'].map((name) => style.getPropertyValue(name));
  const each = sizes(box, shown);
  drawCells(context, shown, each, dark);
  drawAxes(context, shown, each, faint!, line!);
  drawCursor(context, shown, each, text!);
}

function point(event: PointerEvent & { currentTarget: HTMLElement }): void {
  const shown = grid.peek();
  const { left, top } = event.currentTarget.getBoundingClientRect();
  const { width, height } = sizes(event.currentTarget, shown);
  const start = shown.starts[Math.floor((event.clientX - left - LEFT_PX) / width)];
  const at = Math.floor((MAP_PX - (event.clientY - top)) / height);
  minute.value = start ?? null;
  band.value = start !== undefined && at >= 0 && at < shown.bands.length ? at : null;
}

function leave(): void {
  minute.value = null;
  band.value = null;
}

/** Arrows move, Home and End go to the first and the last minute, Escape leaves. */
function key(event: KeyboardEvent): void {
  const { starts, bands } = grid.peek();
  const across = { ArrowLeft: -1, ArrowRight: 1, Home: -starts.length, End: starts.length }[event.key];
  const up = { ArrowUp: 1, ArrowDown: -1 }[event.key];
  if (event.key === 'Escape') leave();
  else if (across === undefined && up === undefined) return;
  else {
    // The first key only enters the map, at the newest minute and the youngest band.
    const isIn = starts.includes(minute.peek() ?? NaN) && band.peek() !== null;
    if (!isIn || across) moveMinute(across ?? 0);
    band.value = Math.max(0, Math.min(bands.length - 1, (band.peek() ?? 0) + (isIn ? up ?? 0 : 0)));
  }
  event.preventDefault();
}

function HeatMap() {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const box = canvas.current!.parentElement!;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  const shown = grid.value;
  const [dark, clock, start, at] = [isDark.value, zone.value, minute.value, band.value];
  useLayoutEffect(() => draw(canvas.current!, shown, dark), [shown, width, dark, clock, start, at]);
  return (
    <div class="map" tabIndex={0} role="application" aria-label="Heat map of arrival against age; arrow keys show values" style={{ height: `${MAP_PX + BOTTOM_PX}px` }}
      onPointerMove={point} onPointerDown={point} onPointerLeave={leave} onBlur={leave} onKeyDown={key}>
      <canvas ref={canvas} aria-hidden="true" />
    </div>
  );
}

function Scale() {
  const { max } = grid.value;
  const dark = isDark.value;
  const tones = Array.from({ length: 9 }, (_, at) => tone(at / 8, dark)).join(', ');
  return (
    <p class="scale">
      <span>1</span><span class="tones" style={{ background: `linear-gradient(to right, ${tones})` }} /><span>{count(Math.max(1, max))}</span>
      <span class="hint">samples a minute, logarithmic; nothing where none came</span>
    </p>
  );
}

const AGES: [Ages, string, string][] = [
  ['late', 'Late samples', 'By their age behind the newest of their series'],
  ['clock', 'All samples', 'By the server\'s clock less their timestamp'],
];

export function Heat() {
  const isEmpty = grid.value.max === 0;
  return (
    <section class="card heat" aria-label="Arrival against age">
      <div class="tabs">
        <h2>Arrival against age</h2>
        <span class="gap" />
        <div role="tablist" aria-label="Ages">
          {AGES.map(([name, title, meaning]) => (
            <button key={name} type="button" role="tab" aria-selected={ages.value === name} title={meaning}
              onClick={() => { band.value = null; setParams({ ages: name === 'late' ? null : name }); }}>{title}</button>
          ))}
        </div>
      </div>
      {isEmpty ? <Empty title="No late samples to show"><p>All samples shows how far samples are behind the clock when they arrive.</p></Empty> : (
        <>
          <HeatMap />
          <p class="hint said" aria-live="polite">{said.value ?? 'The pointer, or the arrow keys in the map, show values. Right: arrived later. Up: older.'}</p>
          <Scale />
        </>
      )}
    </section>
  );
}
