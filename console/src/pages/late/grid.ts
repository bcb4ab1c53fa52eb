// What the heat map shows: counts by minute of arrival and by band of age, the youngest band first.

import { computed } from '@preact/signals';
import { totals, type Minute } from './ask';
import { minutes } from './minutes';
import { ages } from './state';
import { ageText } from './text';

export interface Band {
  /** Its lower bound, for the axis. */
  edge: string;
  /** `1.02s to 2.05s`. */
  text: string;
}

export interface Grid {
  starts: number[];
  bands: Band[];
  /** By minute, then by band. */
  counts: number[][];
  max: number;
}

const BANDS_MIN = 6;

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

function filled(bands: Band[], low: number, pairs: (minute: Minute) => [number, number][]): Grid {
  const counts = minutes.value.map((minute) => {
    const row = bands.map(() => 0);
    for (const [at, samples] of pairs(minute)) row[at - low] = samples;
    return row;
  });
  return { starts: minutes.value.map((minute) => minute.start), bands, counts, max: Math.max(0, ...counts.flat()) };
}

export const grid = computed<Grid>(() => {
  const bounds = totals.value?.heatMap.arrivalAgeBoundsMs ?? [];
  if (ages.value === 'clock') return filled(clockBands(bounds), 0, (minute) => minute.arrivalAges);
  const powers = minutes.value.flatMap((minute) => minute.lateAges.map(([power]) => power));
  const low = powers.length > 0 ? Math.min(...powers) : 10;
  const high = Math.max(low + BANDS_MIN - 1, ...powers);
  return filled(powerBands(low, high), low, (minute) => minute.lateAges);
});
