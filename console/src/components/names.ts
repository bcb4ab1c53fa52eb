// Names for completion, from this server: metrics, labels and values, kept for a minute.

import type { PrometheusClient } from '@prometheus-io/codemirror-promql';
import { api, session, type Parameters } from '../api';
import { quoted } from '../format';

const KEPT_MS = 60_000;
const NAMES_MAX = 10_000;

export type Metadata = Record<string, { type: string; help: string }[]>;

/** What is known of a metric, or of the histogram or counter that it is a part of. */
export function metadataOf(metadata: Metadata, name: string): { type: string; help: string } | undefined {
  const of = (one: string) => (Object.hasOwn(metadata, one) ? metadata[one]![0] : undefined);
  return of(name) ?? of(name.replace(/_(count|sum|bucket|total)$/, ''));
}

const kept = new Map<string, { until_ms: number; answer: Promise<unknown> }>();
session.subscribe(() => kept.clear());

/** What the path answers; `nothing` where it does not. */
function ask<T>(path: string, parameters: Parameters, nothing: T): Promise<T> {
  const key = JSON.stringify([path, parameters]);
  const known = kept.get(key);
  if (known && known.until_ms > Date.now()) return known.answer as Promise<T>;
  const answer = api<T>(path, { limit: NAMES_MAX, ...parameters }).then((outcome) => {
    if (!outcome.ok) kept.delete(key);
    return outcome.ok ? outcome.data : nothing;
  });
  for (const [old, { until_ms }] of kept) if (until_ms <= Date.now()) kept.delete(old);
  kept.set(key, { until_ms: Date.now() + KEPT_MS, answer });
  return answer;
}

type Matchers = { name: string; value: string; matchesEmpty(): boolean }[];

/** A selector of what is written already. */
function selector(metric = '', matchers: Matchers = []): string | undefined {
  const equal = matchers.filter((matcher) => !matcher.matchesEmpty() && matcher.value !== '');
  const parts = equal.map((matcher) => `${quoted(matcher.name)}=${quoted(matcher.value)}`);
  if (metric) parts.unshift(quoted(metric));
  return parts.length > 0 ? `{${parts.join(',')}}` : undefined;
}

/** The names of metrics. */
export const metricNames = () => ask<string[]>('label/__name__/values', {}, []);

/** Names of labels, of the metric if one is given. */
export const labelNames = (metric?: string) => ask<string[]>('labels', { 'match[]': selector(metric) }, []);

/** What codemirror-promql asks. */
export const client: PrometheusClient = {
  metricNames,
  labelNames,
  labelValues: (label, metric, matchers) => ask(`label/${encodeURIComponent(label)}/values`, { 'match[]': selector(metric, matchers) }, []),
  metricMetadata: () => ask<Metadata>('metadata', {}, {}),
  series: async (metric, matchers) => {
    const found = await ask<Record<string, string>[]>('series', { 'match[]': selector(metric, matchers) }, []);
    return found.map((labels) => new Map(Object.entries(labels)));
  },
  flags: async () => ({}),
};
