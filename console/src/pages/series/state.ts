// What the Series page is asked to show, all of it in the address. Without `key` and `match` it
// finds series:
//   by       `key`: find by key; else by labels
//   select   a selector; without it all series
//   text, how  what keys begin with or, where `how` is `pattern`, a glob that they match
// With `delete` it deletes what `select` matches: `samples` in the range, or whole `series`.
// With one of them it shows one series:
//   key      a key, as the server shows it
//   match    a selector of exactly this series; the page puts `key` in its place
//   at       where the page of the table begins, in seconds
//   refresh  a duration between automatic requests
//   range, from, to  as in components/span.ts

import type { Labels } from '../../format';
import { count, seriesText } from '../../format';
import { href } from '../../route';

/** A rule, as `status/series` reports it. */
export interface Rule {
  source: string;
  destination: string;
  aggregator: string;
  bucket_ms: number;
  align_ms: number;
  dirty_buckets: number;
  failed_buckets: number;
  failed: { first_ms: number; last_ms: number }[];
  /** Of the history, still to be computed. */
  backfill_buckets: number;
  open: { first_ms: number; last_ms: number } | null;
  recomputed_ms: number | null;
}

/** What `status/series` answers. */
export interface Series {
  key: string;
  labels: { name: string; value: string }[];
  metric: Labels;
  chunk_size_bytes: number;
  encoding: string;
  duplicate_policy: string | null;
  ignore_max_time_diff_ms: number;
  ignore_max_value_diff: number;
  retention_ms: number;
  samples: number;
  late_pending: number;
  late_samples: number;
  late_arrived_ms: number | null;
  first_ms: number | null;
  last_ms: number | null;
  memory_chunks: number;
  memory_chunks_bytes: number;
  block_chunks: number;
  block_chunks_bytes: number;
  memory_bytes: number;
  source: Rule | null;
  rules: Rule[];
}

/** `1 sample`, `2 samples`. */
export function several(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
}

/** The address of the series with this key. */
export function keyHref(key: string): string {
  return href('series', { key });
}

/** The address of the series with these labels, as PromQL sees them; `time` is a range of the address. */
export function labelsHref(labels: Labels, time: Record<string, string> = {}): string {
  const { __key__: key } = labels;
  return href('series', { ...(key === undefined ? { match: seriesText(labels) } : { key }), ...time });
}
