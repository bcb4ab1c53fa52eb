// Why no series of one side matches one of the other, and what would: judged by the examples, as
// nothing else is known of the series.

import { labelOf, type Labels } from '../../format';
import type { Example, Matching, Side } from './nodes';

export type Verdict = 'same' | 'only left' | 'only right' | 'different';

/** One label on both sides. */
export interface Difference {
  label: string;
  /** Whether it has to be the same for series to match. */
  isCompared: boolean;
  verdict: Verdict;
  left: string[];
  right: string[];
}

/** How series would match. */
export interface Suggestion {
  /** Labels that are the same on series of both sides; none where one side is a total. */
  on: string[];
  /** The others. */
  ignoring: string[];
  /** The side that has several series with the same labels. */
  group: 'group_left' | 'group_right' | null;
  /** A label of the right side that has the values of the one in `on`. */
  renamed: string | null;
  /** Whether the right side has to be aggregated first, as both have several series. */
  isAggregated: boolean;
}

const SET_OPERATORS = new Set(['and', 'or', 'unless']);
const METRIC = '__name__';

function values(examples: Example[], label: string): string[] {
  return [...new Set(examples.map(({ labels }) => labelOf(labels, label)))].filter((value) => value !== '');
}

function names(examples: Example[]): string[] {
  return [...new Set(examples.flatMap(({ labels }) => Object.keys(labels)))];
}

/** Whether a label has to be the same for series to match. */
function isCompared(matching: Matching, label: string): boolean {
  return matching.on ? matching.labels.includes(label) : label !== METRIC && !matching.labels.includes(label);
}

/** The labels of the examples, those first that keep them apart. */
export function differences(matching: Matching): Difference[] {
  const [left, right] = [matching.left.examples, matching.right.examples];
  const labels = new Set([...(matching.on ? matching.labels : []), ...names(left), ...names(right)]);
  const found = [...labels].filter((label) => label !== METRIC || isCompared(matching, label)).map((label): Difference => {
    const [lefts, rights] = [values(left, label), values(right, label)];
    const verdict = rights.some((value) => lefts.includes(value)) || lefts.length + rights.length === 0 ? 'same'
      : rights.length === 0 ? 'only left' : lefts.length === 0 ? 'only right' : 'different';
    return { label, isCompared: isCompared(matching, label), verdict, left: lefts, right: rights };
  });
  const rank = (one: Difference) => (one.isCompared ? 0 : 2) + (one.verdict === 'same' ? 1 : 0);
  return found.sort((a, b) => rank(a) - rank(b) || a.label.localeCompare(b.label));
}

/** Counts what `found` gives for each pair of examples, as JSON. */
function tally(left: Example[], right: Example[], found: (left: Labels, right: Labels) => string[][]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { labels: a } of left) {
    for (const { labels: b } of right) {
      for (const one of found(a, b)) counts.set(JSON.stringify(one), (counts.get(JSON.stringify(one)) ?? 0) + 1);
    }
  }
  return counts;
}

/** The largest set of labels that a series of each side has in common; the most frequent of several. */
function common(left: Example[], right: Example[]): string[] {
  const counts = tally(left, right, (a, b) => [Object.keys(a).filter((label) => label !== METRIC && a[label] !== '' && a[label] === labelOf(b, label)).sort()]);
  const ranked = [...counts].map(([key, count]) => ({ labels: JSON.parse(key) as string[], count }));
  ranked.sort((a, b) => b.labels.length - a.labels.length || b.count - a.count);
  return ranked[0]?.labels ?? [];
}

/** Labels of different names that have the same values. */
function renamed(left: Example[], right: Example[]): [left: string, right: string] | null {
  const pairs = (a: Labels, b: Labels) => Object.keys(a).flatMap((one) => Object.keys(b)
    .filter((other) => one !== METRIC && other !== METRIC && one !== other && a[one] !== '' && a[one] === b[other]).map((other) => [one, other]));
  const ranked = [...tally(left, right, pairs)].sort((a, b) => b[1] - a[1]);
  return ranked[0] ? JSON.parse(ranked[0][0]) as [string, string] : null;
}

function hasSeveral(examples: Example[], labels: string[]): boolean {
  const keys = new Set(examples.map((example) => JSON.stringify(labels.map((label) => labelOf(example.labels, label)))));
  return keys.size < examples.length;
}

/** Whether it is one series without labels, as sum() gives it. */
function isTotal({ series, examples }: Side): boolean {
  return series === 1 && examples.length === 1 && names(examples).every((label) => label === METRIC);
}

/** What would let series match; null where no label has the same values on both sides. */
export function suggestion(operator: string, matching: Matching): Suggestion | null {
  const [left, right] = [matching.left.examples, matching.right.examples];
  const same = common(left, right);
  const pair = same.length === 0 ? renamed(left, right) : null;
  const on = pair ? [pair[0]] : same;
  if (on.length === 0 && !isTotal(matching.left) && !isTotal(matching.right)) return null;
  const isSet = SET_OPERATORS.has(operator);
  const [leftHas, rightHas] = [hasSeveral(left, on), hasSeveral(right, pair ? [pair[1]] : on)];
  const ignoring = [...new Set([...names(left), ...names(right)])].filter((label) => label !== METRIC && !on.includes(label)).sort();
  return {
    on, ignoring,
    group: isSet ? null : leftHas ? 'group_left' : rightHas ? 'group_right' : null,
    renamed: pair?.[1] ?? null,
    isAggregated: !isSet && leftHas && rightHas,
  };
}
