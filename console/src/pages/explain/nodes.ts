// What /api/v1/explain answers, and what the tree needs to know of its nodes.

import { count, short, took, unitsOf, type Labels } from '../../format';

/** Labels of one series, or the first of them. */
export interface Example {
  labels: Labels;
  labelsOmitted: number;
}

export interface Side {
  series: number;
  matched: number;
  unmatched: number;
  /** Of series that match nothing. */
  examples: Example[];
}

/** Which series of both sides of an operation belong together. */
export interface Matching {
  card: 'one-to-one' | 'many-to-one' | 'one-to-many' | 'many-to-many';
  /** Whether `labels` are those of `on`; else they are those of `ignoring`. */
  on: boolean;
  labels: string[];
  include: string[];
  fillLeft: unknown;
  fillRight: unknown;
  pairs: number;
  left: Side;
  right: Side;
  examples: { left: Example; right: Example }[];
  examplesOmitted: boolean;
}

export interface Node {
  id: number;
  parent: number | null;
  depth: number;
  children: number[];
  childrenOmitted: number;
  kind: string;
  name: string;
  text: string;
  /** Bytes of the query. */
  start: number;
  end: number;
  type: string;
  /** Whether it has the fields that may be missing. */
  evaluated: boolean;
  notes: string[];
  totalMs: number;
  steps?: number;
  series?: number;
  samples?: number;
  seriesKnown?: number;
  seriesEvaluated?: number;
  columns?: number;
  ownMs?: number;
  peakBytes?: number;
  seriesRead?: number;
  samplesRead?: number;
  lateSamplesMerged?: number;
  matching?: Matching;
}

export interface Annotation {
  level: 'warning' | 'info';
  text: string;
  start: number;
  end: number;
}

export interface Explanation {
  /** A parent is before its parts; the first one is the query. */
  nodes: Node[];
  nodesOmitted: number;
  resultType: string;
  range: boolean;
  start: number;
  end: number;
  step: number;
  steps: number;
  evaluationMs: number;
  stats: { series: number; samples: number; seriesRead: number; samplesRead: number; lateSamplesMerged: number; peakBytes: number };
  annotations: Annotation[];
}

/** The parts of a node that are in the list. */
export function partsOf(nodes: Node[], node: Node): Node[] {
  return node.children.flatMap((id) => nodes[id] ?? []);
}

/** Series that went into a node: of its parts, or from storage. */
export function seriesIn(nodes: Node[], node: Node): number | undefined {
  if (!node.evaluated) return undefined;
  if (node.matching) return node.matching.left.series + node.matching.right.series;
  if (node.children.length === 0) return node.seriesRead;
  return partsOf(nodes, node).reduce((sum, part) => sum + (part.series ?? 0), 0);
}

/** Its share of the time of the whole query, 0 to 1. */
export function share(nodes: Node[], ms: number | undefined): number {
  const whole_ms = nodes[0]?.totalMs ?? 0;
  return whole_ms > 0 ? Math.min(1, (ms ?? 0) / whole_ms) : 0;
}

/** What a kind is called. */
export function kindText(node: Node): string {
  return node.kind.replace('_', ' ');
}

/** The node that took most time by itself. */
export function slowest(nodes: Node[]): Node | undefined {
  return nodes.reduce<Node | undefined>((most, node) => ((node.ownMs ?? 0) > (most?.ownMs ?? -1) ? node : most), undefined);
}

/** The innermost node that bytes of the query belong to. */
export function nodeAt(nodes: Node[], start: number, end: number): Node | undefined {
  // Parts are behind what they are parts of.
  return nodes.filter((node) => node.start <= start && end <= node.end).at(-1);
}

/** Where a node stands in the query. */
export function spanIn(query: string, node: Node): { from: number; to: number } {
  return { from: unitsOf(query, node.start), to: unitsOf(query, node.end) };
}

/** A time that may be less than a millisecond. */
export function timeOf(ms: number): string {
  return ms === 0 ? '0' : ms < 1 ? `${Math.max(1, Math.round(ms * 1000))} \u00b5s` : took(ms);
}

/** A count in at most seven digits. */
export function brief(value: number): string {
  return value < 1e6 ? count(value) : short(Number(value.toPrecision(3)));
}
