// The chart's other form: a histogram as a heat map over time.

import { computed, signal } from '@preact/signals';
import { timeText } from '../../clock';
import { NO_CELL, type Cell } from '../../components/heatgrid';
import { HeatMap } from '../../components/heatmap';
import { Remarks, remarks } from '../../components/notice';
import type { Span } from '../../components/span';
import { count, short } from '../../format';
import { setParams } from '../../route';
import { heatOf, histogramsOf } from './histogram';
import { times } from './lines';
import { answers, run } from './run';
import { heat } from './state';

/** The histograms of the answers. */
export const histograms = computed(() => histogramsOf(answers.value));

const chosen = computed(() => histograms.value.find(({ name }) => name === heat.value) ?? histograms.value[0]);

const shown = computed(() => (chosen.value && run.value ? heatOf(chosen.value, times.value, run.value) : null));

const cell = signal<Cell>(NO_CELL);

const said = computed<string | null>(() => {
  const { time, band } = cell.value;
  const grid = shown.value?.grid;
  const column = grid?.times.indexOf(time ?? NaN) ?? -1;
  if (!grid || column < 0) return null;
  const text = band === null ? undefined : grid.bands[band]?.text;
  if (band === null || text === undefined) return timeText(grid.times[column]!);
  const value = grid.cells[column]?.[band] ?? null;
  return `${timeText(grid.times[column]!)}, ${text}: ${value === null ? 'no value' : short(value)}`;
});

function Choice() {
  const all = histograms.value;
  if (all.length < 2) return null;
  return (
    <label class="inline histogram">Histogram
      <select value={chosen.value?.name} onChange={(event) => setParams({ heat: event.currentTarget.value }, true)}>
        {all.map(({ name, label }) => <option key={name} value={name}>{label}</option>)}
      </select>
    </label>
  );
}

function warnings(): string[] {
  const [histogram, negative] = [chosen.value, shown.value?.negative ?? 0];
  const found: string[] = [];
  if (negative > 0) found.push(negative === 1 ? '1 cell is shown as 0: its bucket counts less than one below it.' : `${count(negative)} cells are shown as 0: their buckets count less than one below them.`);
  if (histogram?.isMixed) found.push('The histograms do not have the same buckets, so that their sum by le is not exact. Choose one of them.');
  return found;
}

/** The button that switches between lines and the heat map. */
export function HeatToggle() {
  const isOn = heat.value !== null;
  if (!isOn && histograms.value.length === 0) return null;
  return (
    <button type="button" class="toggle" aria-pressed={isOn} title="Buckets of histograms over time"
      onClick={() => setParams({ heat: isOn ? null : 'on' }, true)}>Heat map</button>
  );
}

/** Whether the heat map is drawn, not lines. */
export const isHeat = computed(() => heat.value !== null && histograms.value.length > 0);

export function Heat({ height, onSpan, onBack }: { height: number; onSpan: (span: Span) => void; onBack: () => void }) {
  if (!shown.value || !chosen.value) return null;
  return (
    <div class="heat">
      <Choice />
      <HeatMap label={`Heat map of ${chosen.value.label}`} grid={shown.value.grid} height={height} cell={cell.value} onCell={(next) => { cell.value = next; }}
        onSpan={onSpan} onBack={onBack} said={said.value} hint="The pointer, or the arrow keys in the map, show values." format={short}
        unit="in each bucket, logarithmic; nothing where there is no value" />
      <Remarks all={remarks('warning', warnings())} />
    </div>
  );
}
