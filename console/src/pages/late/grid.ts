// What the heat map shows: counts by minute of arrival and by band of age, the youngest band first.

import { computed } from '@preact/signals';
import type { Band, HeatGrid } from '../../components/heatgrid';
import { totals, type Minute } from './ask';
import { minutes } from './minutes';
import { ages } from './state';
import { ageText } from './text';

const BANDS_MIN = 6;
const MINUTE_MS = 60_000;

function powerBands(low: number, high: number): Band[] {
  return Array.from({ length: high - low + 1 }, (_, at) => {
    const [from, to] = [2 ** (low + at), 2 ** (low + at + 1)].map(ageText);
    return { edge: from!, text: `${from} to ${to} behind the newest` };
  });
}

function clockBands(bounds: number[]): Band[] {
  const names = bounds.map(ageText);
  const bands = names.map((name, at) => (at === 0
    ? { edge: '0s', text: `up to ${name} behind the clock, or ahead of it` }
    : { edge: names[at - 1]!, text: `${names[at - 1]} to ${name} behind the clock` }));
  return [...bands, { edge: names.at(-1) ?? '0s', text: `more than ${names.at(-1)} behind the clock` }];
}

function filled(bands: Band[], low: number, pairs: (minute: Minute) => [number, number][]): HeatGrid {
  const cells = minutes.value.map((minute) => {
    const column = bands.map((): number | null => null);
    for (const [at, samples] of pairs(minute)) column[at - low] = samples;
    return column;
  });
  const step_ms = totals.value?.heatMap.stepMs ?? MINUTE_MS;
  return { times: minutes.value.map((minute) => minute.start), step_ms, bands, cells };
}

export const grid = computed<HeatGrid>(() => {
  const bounds = totals.value?.heatMap.arrivalAgeBoundsMs ?? [];
  if (ages.value === 'clock') return filled(clockBands(bounds), 0, (minute) => minute.arrivalAges);
  const powers = minutes.value.flatMap((minute) => minute.lateAges.map(([power]) => power));
  const low = powers.length > 0 ? Math.min(...powers) : 10;
  const high = Math.max(low + BANDS_MIN - 1, ...powers);
  return filled(powerBands(low, high), low, (minute) => minute.lateAges);
});
