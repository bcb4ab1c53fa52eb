// The answers as lines of a chart, and as samples for tables and files.

import { computed } from '@preact/signals';
import { seriesText, type Labels } from '../../format';
import { letter } from './drafts';
import { answers, run, type Run, type Sample } from './run';
import { hash } from './state';

/** Lines that are drawn at most; tables show all. */
export const LINES_MAX = 500;

/** One series of one query. */
export interface SeriesLine {
  query: number;
  labels: Labels;
  label: string;
  /** Its name in the address. */
  name: string;
  values: (number | null)[];
}

/** A value as the server writes it. */
export function valueOf(text: string): number {
  return text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text);
}

const severalAsked = computed(() => answers.value.filter((answer) => answer !== null).length > 1);

/** The times of the chart. */
export const times = computed<number[]>(() => {
  const now = run.value;
  if (!now?.isRange) return [];
  const length = Math.max(0, Math.floor((now.end_ms - now.start_ms) / now.step_ms) + 1);
  return Array.from({ length }, (_, at) => now.start_ms + at * now.step_ms);
});

/** Samples by step of the run; null where there is none. */
export function columnOf(samples: Sample[], length: number, { start_ms, step_ms }: Run): (number | null)[] {
  const values = new Array<number | null>(length).fill(null);
  for (const [seconds, text] of samples) values[Math.round((seconds * 1000 - start_ms) / step_ms)] = valueOf(text);
  return values;
}

/** How many series there are, drawn or not. */
export const seriesTotal = computed(() => answers.value.reduce((sum, answer) => sum + (answer?.data && answer.data.resultType === 'matrix' ? answer.data.result.length : 0), 0));

/** What is drawn. */
export const lines = computed<SeriesLine[]>(() => {
  const now = run.value;
  if (!now?.isRange) return [];
  const length = times.value.length;
  const made: SeriesLine[] = [];
  answers.value.forEach((answer, query) => {
    if (answer?.data?.resultType !== 'matrix') return;
    for (const { metric, values } of answer.data.result.slice(0, LINES_MAX - made.length)) {
      const label = seriesText(metric);
      made.push({
        query, labels: metric, name: hash(`${letter(query)} ${label}`),
        label: severalAsked.value ? `${letter(query)} ${label}` : label,
        values: columnOf(values, length, now),
      });
    }
  });
  return made;
});

/** The samples of one series of one query, of whatever kind its answer is. */
export interface Found {
  query: number;
  labels: Labels;
  samples: Sample[];
}

export const found = computed<Found[]>(() => answers.value.flatMap((answer, query): Found[] => {
  const data = answer?.data;
  switch (data?.resultType) {
    case 'vector':
      return data.result.map(({ metric, value }) => ({ query, labels: metric, samples: [value] }));
    case 'matrix':
      return data.result.map(({ metric, values }) => ({ query, labels: metric, samples: values }));
    case 'scalar':
    case 'string':
      return [{ query, labels: {}, samples: [data.result] }];
    default:
      return [];
  }
}));

export const samplesTotal = computed(() => found.value.reduce((sum, { samples }) => sum + samples.length, 0));

export const isEmpty = computed(() => samplesTotal.value === 0);
