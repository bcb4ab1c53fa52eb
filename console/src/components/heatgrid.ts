// What a heat map shows, where its cells lie, and how it is drawn.

import { timesIn } from './axis';
import { part, scaleOf, tone } from './palette';

export interface Band {
  /** Its lower bound, for the axis. */
  edge: string;
  /** Both bounds in words. */
  text: string;
}

/** Amounts by time and band, the lowest band first. */
export interface HeatGrid {
  /** Times of the columns, which are `step_ms` apart. */
  times: number[];
  step_ms: number;
  bands: Band[];
  /** By column, then by band; null: nothing is known, and nothing is drawn. */
  cells: (number | null)[][];
}

/** The chosen cell; without a band, the column. */
export interface Cell {
  time: number | null;
  band: number | null;
}

export const NO_CELL: Cell = { time: null, band: null };

const LEFT_PX = 64;
const BOTTOM_PX = 36;
/** The least between two ticks of time. */
const TICK_PX = 80;

/** Where cells lie in a map of this size. */
export class Places {
  readonly map_px: number;
  readonly width: number;
  readonly height: number;

  constructor(readonly grid: HeatGrid, width_px: number, height_px: number) {
    this.map_px = height_px - BOTTOM_PX;
    this.width = Math.max(1, width_px - LEFT_PX) / Math.max(1, grid.times.length);
    this.height = this.map_px / Math.max(1, grid.bands.length);
  }

  left(column: number): number { return LEFT_PX + column * this.width; }

  top(band: number): number { return this.map_px - (band + 1) * this.height; }

  /** The column at a place, whole or not. */
  column(x: number): number { return (x - LEFT_PX) / this.width; }

  /** A cell as a box, with its width and height; null where it is not in the map. */
  box({ time, band }: Cell): [x: number, y: number, width: number, height: number] | null {
    const column = this.grid.times.indexOf(time ?? NaN);
    if (column < 0) return null;
    const isCell = band !== null && band < this.grid.bands.length;
    return [this.left(column), isCell ? this.top(band) : 0, this.width, isCell ? this.height : this.map_px];
  }

  /** The cell at a place. */
  cell(x: number, y: number): Cell {
    const time = this.grid.times[Math.floor(this.column(x))];
    const band = Math.floor((this.map_px - y) / this.height);
    if (time === undefined) return NO_CELL;
    return { time, band: band >= 0 && band < this.grid.bands.length ? band : null };
  }
}

/** Colours of the page. */
interface Colours { faint: string; line: string; zero: string; dark: boolean }

function drawCells(context: CanvasRenderingContext2D, places: Places, colours: Colours): void {
  const { grid: { cells }, width, height } = places;
  const scale = scaleOf(cells);
  const [across, down] = [width > 8 ? 1 : 0, height > 4 ? 1 : 0];
  // Edges on whole pixels: shared ones would shine through as stripes.
  const ratio = devicePixelRatio || 1;
  const whole = (px: number) => Math.round(px * ratio) / ratio;
  cells.forEach((column, at) => column.forEach((value, band) => {
    if (value === null) return;
    context.fillStyle = value > 0 && scale ? tone(part(value, scale), colours.dark) : colours.zero;
    const [x, y] = [whole(places.left(at)), whole(places.top(band))];
    context.fillRect(x, y, Math.max(1, whole(places.left(at + 1)) - x - across), Math.max(1, whole(places.top(band - 1)) - y - down));
  }));
}

function drawAxes(context: CanvasRenderingContext2D, places: Places, { faint, line }: Colours): void {
  const { grid: { times, step_ms, bands }, width, height, map_px } = places;
  context.strokeStyle = line;
  context.strokeRect(LEFT_PX - 0.5, 0.5, width * times.length, map_px - 1);
  context.fillStyle = faint;
  context.font = '12px system-ui, sans-serif';
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  const every = Math.ceil(15 / height);
  bands.forEach(({ edge }, band) => {
    if (band % every === 0) context.fillText(edge, LEFT_PX - 6, map_px - band * height, LEFT_PX - 8);
  });
  context.textBaseline = 'top';
  context.textAlign = 'center';
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  for (const { ms, text } of timesIn({ from_ms: first, to_ms: last }, (TICK_PX / width) * step_ms)) {
    const rows = text.split('\n');
    const half = Math.max(...rows.map((row) => context.measureText(row).width)) / 2;
    const x = Math.min(places.left((ms - first) / step_ms + 0.5), places.left(times.length) - half);
    rows.forEach((row, below) => context.fillText(row, x, map_px + 7 + 14 * below));
  }
}

/** Draws the map into the canvas, as large as its box. */
export function draw(canvas: HTMLCanvasElement, grid: HeatGrid, dark: boolean): void {
  const box = canvas.parentElement!;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(box.clientWidth * ratio);
  canvas.height = Math.round(box.clientHeight * ratio);
  const context = canvas.getContext('2d')!;
  context.scale(ratio, ratio);
  const style = getComputedStyle(box);
  const colour = (name: string) => style.getPropertyValue(name);
  const colours = { faint: colour('--faint'), line: colour('--line'), zero: colour('--hover'), dark };
  const places = new Places(grid, box.clientWidth, box.clientHeight);
  drawCells(context, places, colours);
  drawAxes(context, places, colours);
}
