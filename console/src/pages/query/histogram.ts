// Classic histograms among the answers: series that differ only in the label `le`, each counting
// what is not more than it. Here each bucket becomes a band of its own: what it has more than the
// bucket below it.

import type { Band, HeatGrid } from '../../components/heatgrid';
import { seriesText, short, type Labels } from '../../format';
import { letter } from './drafts';
import { columnOf, valueOf } from './lines';
import type { Answered, Run, Sample } from './run';
import { hash } from './state';

interface Bucket {
  le: number;
  values: Sample[];
}

/** Buckets that belong together, in any order. */
export interface Histogram {
  /** Its name in the address. */
  name: string;
  label: string;
  buckets: Bucket[];
  /** How many histograms it is the sum of, by `le`. */
  summed: number;
  /** These histograms do not have the same buckets. */
  isMixed: boolean;
}

function bounds(buckets: Bucket[]): string {
  return [...new Set(buckets.map(({ le }) => le))].sort((a, b) => a - b).join(' ');
}

function sumOf(query: number, all: Histogram[]): Histogram {
  const name = letter(query);
  return {
    name: hash(`${name} sum by le`), label: `${name}: all ${all.length}, summed by le`, buckets: all.flatMap(({ buckets }) => buckets),
    summed: all.length, isMixed: all.some(({ buckets }) => bounds(buckets) !== bounds(all[0]!.buckets)),
  };
}

/** The histograms of the answers; of a query with several, their sum first. */
export function histogramsOf(answers: (Answered | null)[]): Histogram[] {
  return answers.flatMap((answer, query) => {
    if (answer?.data?.resultType !== 'matrix') return [];
    const found = new Map<string, Histogram>();
    for (const { metric, values } of answer.data.result) {
      const { le: text, ...rest } = metric;
      const le = valueOf(text?.trim() || 'NaN');
      if (Number.isNaN(le)) continue;
      const of = seriesText(rest as Labels);
      const one = found.get(of) ?? { name: hash(`${letter(query)} ${of}`), label: `${letter(query)}: ${of}`, buckets: [], summed: 1, isMixed: false };
      one.buckets.push({ le, values });
      found.set(of, one);
    }
    const all = [...found.values()];
    return all.length > 1 ? [sumOf(query, all), ...all] : all;
  });
}

/** The bands between these bounds, the first from 0 where that is below it. */
function bandsOf(les: number[]): Band[] {
  return les.map((le, at) => {
    const below = les[at - 1];
    const upTo = le === Infinity ? null : short(le);
    if (below === undefined) return { edge: le > 0 ? '0' : '', text: upTo === null ? 'all values' : `up to ${upTo}` };
    return { edge: short(below), text: upTo === null ? `more than ${short(below)}` : `${short(below)} to ${upTo}` };
  });
}

/** Buckets by bound, ascending; those of the same bound are added. */
function counts({ buckets }: Histogram, now: Run, length: number): [number, (number | null)[]][] {
  const columns = new Map<number, (number | null)[]>();
  for (const { le, values } of buckets) {
    const column = columnOf(values, length, now);
    const known = columns.get(le);
    columns.set(le, known ? known.map((value, at) => (value === null ? column[at]! : value + (column[at] ?? 0))) : column);
  }
  return [...columns].sort(([a], [b]) => a - b);
}

/** What is not more than this part of a bucket comes from adding floating-point numbers, as in Prometheus. */
const ROUNDING = 1e-12;

/**
 * The histogram as a heat map, and how many cells would be less than 0. A bucket that has no
 * number at a time leaves its band and the one above it empty there.
 */
export function heatOf(histogram: Histogram, times: number[], now: Run): { grid: HeatGrid; negative: number } {
  const columns = counts(histogram, now, times.length);
  let negative = 0;
  const cells = times.map((_, at) => {
    let below: number | null = 0;
    let most = 0;
    return columns.map(([, values]) => {
      const value = values[at] ?? NaN;
      const isKnown: boolean = Number.isFinite(value) && below !== null;
      below = Number.isFinite(value) ? value : null;
      const more = value - most;
      if (below !== null) most = Math.max(most, value);
      if (!isKnown) return null;
      if (more > ROUNDING * most) return more;
      if (more < -ROUNDING * most) negative++;
      return 0;
    });
  });
  return { grid: { times, step_ms: now.step_ms, bands: bandsOf(columns.map(([le]) => le)), cells }, negative };
}
