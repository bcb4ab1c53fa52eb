// Compaction rules as the server reports them, page after page.

import { signal } from '@preact/signals';
import { api, type Outcome } from '../../api';
import { Maybe, shaped, type Shaped } from '../../shape';

const NUMBER: number = NaN;
const TEXT: string = '';

/** docs/api-status.md describes the fields. */
const PAGE = {
  rules: [{
    source: TEXT, destination: TEXT, aggregator: TEXT, bucket_ms: NUMBER, align_ms: NUMBER,
    dirty_buckets: NUMBER, failed_buckets: NUMBER, backfill_buckets: NUMBER,
    failed: [{ first_ms: NUMBER, last_ms: NUMBER }],
    open: new Maybe({ first_ms: NUMBER, last_ms: NUMBER }),
    recomputed_ms: new Maybe(NUMBER),
  }],
  cursor: new Maybe(TEXT),
};

export type Rule = Shaped<typeof PAGE>['rules'][number];

export interface Found {
  rules: Rule[];
  /** There are more than are asked for. */
  isCut: boolean;
}

const PAGE_RULES = 1000;
export const RULES_MAX = 100_000;

/** How many have come, while they come. */
export const soFar = signal(0);

/** Asks for all rules. */
export async function allRules(abort: AbortSignal): Promise<Outcome<Found>> {
  const began = performance.now();
  const rules: Rule[] = [];
  let cursor: string | null = null;
  let turn = 0;
  soFar.value = 0;
  do {
    const outcome: Outcome<unknown> = await api<unknown>('status/rules', { limit: PAGE_RULES, cursor: cursor ?? undefined }, { signal: abort });
    // A cursor does not outlive a restart of the server: from the beginning, once.
    if (!outcome.ok && outcome.status === 400 && cursor !== null && turn++ === 0) {
      rules.length = 0;
      cursor = null;
      continue;
    }
    if (!outcome.ok) return outcome;
    const page: Shaped<typeof PAGE> = shaped(outcome.data, PAGE);
    rules.push(...page.rules);
    cursor = page.cursor;
    soFar.value = rules.length;
    if (cursor === null) break;
  } while (rules.length < RULES_MAX);
  return { ok: true, data: { rules, isCut: cursor !== null }, warnings: [], infos: [], took_ms: performance.now() - began };
}

/** Something is still to be done for it, or cannot be. */
export const isBehind = (rule: Rule) => rule.dirty_buckets > 0 || rule.failed_buckets > 0 || rule.backfill_buckets > 0;

/** Those in which all words of the filter occur, in a key or the aggregator. */
export function matching(rules: Rule[], filter: string, onlyBehind: boolean): Rule[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0 && !onlyBehind) return rules;
  return rules.filter((rule) => {
    if (onlyBehind && !isBehind(rule)) return false;
    const text = `${rule.source}\n${rule.destination}\n${rule.aggregator}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
