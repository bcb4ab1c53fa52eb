// Selectors of exactly one series, checked by the server.

import { api, type Failure } from '../../api';
import { seriesText, type Labels } from '../../format';
import type { Series } from './state';

/** Series that are looked at where a selector matches several. */
const CHOICES_MAX = 10_000;

/** The first of these that selects the series `key` alone; what went wrong where that is not known. */
async function firstOf(key: string, matches: string[], signal: AbortSignal): Promise<string | null | Failure> {
  for (const match of matches) {
    const outcome = await api<Series>('status/series', { 'match[]': match }, { signal });
    if (outcome.ok && outcome.data.key === key) return match;
    // Where several series match, or none, others may do.
    if (!outcome.ok && outcome.status !== 400 && outcome.status !== 404) return outcome;
  }
  return null;
}

/** Without the labels that only others have. */
function without(labels: Labels, others: Iterable<string>): Labels {
  const absent = [...others].filter((name) => !Object.hasOwn(labels, name) && name !== '__key__');
  return Object.fromEntries([...Object.entries(labels), ...absent.map((name) => [name, ''])]);
}

/**
 * A selector that matches this series and, as the server stands, no other. Labels that only others
 * have must be empty; series with the same labels are told apart by `__key__`. Null where there is
 * none; what went wrong where the server does not say.
 */
export async function exactSelector(key: string, metric: Labels, signal: AbortSignal): Promise<string | null | Failure> {
  const equal = seriesText(metric);
  const found = await firstOf(key, [equal], signal);
  if (found !== null) return found;
  const names = await api<string[]>('labels', { 'match[]': equal }, { signal });
  if (!names.ok) return names;
  const alone = without(metric, names.data);
  const tries = names.data.includes('__key__') ? [{ ...alone, __key__: key }, { ...alone, __key__: '' }] : [alone];
  return firstOf(key, tries.map(seriesText), signal);
}

/** What a selector of several series can mean: the one with exactly its labels, or a choice. */
export type Meaning = { match: string } | { choices: Labels[] };

/** What `match` means, which is not a selector of one series. */
export async function meaningOf(match: string, signal: AbortSignal): Promise<Meaning | null> {
  const found = await api<Labels[]>('series', { 'match[]': match, limit: CHOICES_MAX }, { signal });
  if (!found.ok || found.data.length === 0) return null;
  const same = found.data.find((labels) => seriesText(labels) === match);
  const exact = same && seriesText(without(same, found.data.flatMap((labels) => Object.keys(labels))));
  return exact && exact !== match ? { match: exact } : { choices: found.data };
}
