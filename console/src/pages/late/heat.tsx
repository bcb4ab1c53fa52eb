// The heat map: when samples arrived against how old they were.

import { computed, signal } from '@preact/signals';
import { clockText } from '../../clock';
import type { Cell } from '../../components/heatgrid';
import { HeatMap } from '../../components/heatmap';
import { Empty } from '../../components/notice';
import { TabPanel, Tabs } from '../../components/tabs';
import { count } from '../../format';
import { grid } from './grid';
import { minuteText } from './minutes';
import { ages, minute, type Ages } from './state';

const HEIGHT_PX = 336;

/** The band of the chosen cell; its minute is that of the charts. */
const band = signal<number | null>(null);
ages.subscribe(() => { band.value = null; });

const said = computed<string | null>(() => {
  const { times, bands, cells } = grid.value;
  const column = times.indexOf(minute.value ?? NaN);
  const at = band.value;
  if (column < 0) return null;
  if (at === null || !bands[at]) return minuteText.value;
  const noun = ages.value === 'late' ? 'late samples' : 'samples';
  return `${clockText(times[column]!).slice(0, 5)}, ${bands[at].text}: ${count(cells[column]?.[at] ?? 0)} ${noun}`;
});

function choose(cell: Cell): void {
  minute.value = cell.time;
  band.value = cell.band;
}

const AGES: [Ages, string, string][] = [
  ['late', 'Late samples', 'By their age behind the newest of their series'],
  ['clock', 'All samples', 'By the server\'s clock less their timestamp'],
];

export function Heat() {
  const isEmpty = grid.value.cells.every((column) => column.every((samples) => samples === null));
  return (
    <section class="card heat" aria-label="Arrival against age">
      <div class="tabs">
        <h2>Arrival against age</h2>
        <span class="gap" />
        <Tabs label="Ages" param="ages" tabs={AGES} chosen={ages.value} />
      </div>
      <TabPanel param="ages" chosen={ages.value}>{isEmpty ? <Empty title="No late samples to show"><p>All samples shows how far samples are behind the clock when they arrive.</p></Empty> : (
        <HeatMap label="Heat map of arrival against age" grid={grid.value} height={HEIGHT_PX} cell={{ time: minute.value, band: band.value }} onCell={choose}
          said={said.value} hint="The pointer, or the arrow keys in the map, show values. Right: arrived later. Up: older."
          format={count} unit="samples a minute, logarithmic; nothing where none came" />
      )}</TabPanel>
    </section>
  );
}
