// Rules of rule files as the server reports them, page after page.

import { api, type Outcome } from '../../api';
import { labelText, quoted, type Labels } from '../../format';
import { Maybe, Named, shaped, type Shaped } from '../../shape';

const NUMBER: number = NaN;
const TEXT: string = '';
const FLAG: boolean = false;

/** docs/rules.md describes the fields. Durations are in seconds, times are texts of RFC 3339. */
const PAGE = {
  groups: [{
    name: TEXT, file: TEXT, interval: NUMBER, limit: NUMBER, evaluationTime: NUMBER, lastEvaluation: TEXT,
    rules: [{
      name: TEXT, query: TEXT, type: TEXT, health: TEXT, lastError: TEXT, evaluationTime: NUMBER, lastEvaluation: TEXT, rows: NUMBER,
      labels: new Named(TEXT), state: TEXT, duration: NUMBER, keepFiringFor: NUMBER, annotations: new Named(TEXT),
      corrections: new Maybe({
        corrected: FLAG, reason: TEXT, since: new Maybe(TEXT), final: new Maybe(TEXT),
        isPending: FLAG, pendingSteps: NUMBER, pendingFrom: new Maybe(TEXT), pendingTo: new Maybe(TEXT),
        lastRun: new Maybe(TEXT), lastRunSeconds: NUMBER, rowsWritten: NUMBER, rowsDeleted: NUMBER, failure: TEXT,
      }),
      inputDelay: new Maybe({ p50: NUMBER, p99: NUMBER, p999: NUMBER, samples: NUMBER, queryOffset: NUMBER }),
    }],
  }],
  groupNextToken: new Maybe(TEXT),
  mayReload: FLAG,
};

export type Group = Shaped<typeof PAGE>['groups'][number];
export type Corrections = NonNullable<Plain['corrections']>;
type Plain = Group['rules'][number];
/** A rule, and what its group says of it. */
export type Rule = Plain & {
  /** Names it in the address: file, group and place. */
  id: string;
  group: Group;
};

export interface Found {
  groups: Group[];
  rules: Rule[];
  /** Whether the user may have the files read again. */
  mayReload: boolean;
  /** What the server says beside, such as that rules are hidden from the user. */
  warnings: string[];
}

const PAGE_GROUPS = 200;

function rulesOf(group: Group): Rule[] {
  return group.rules.map((rule, at) => ({ ...rule, group, id: `${groupId(group)};${at}` }));
}

/** Asks for all groups, without their alerts. */
export async function allGroups(abort: AbortSignal): Promise<Outcome<Found>> {
  const began = performance.now();
  const groups: Group[] = [];
  let token: string | null = null;
  let turn = 0;
  let mayReload = false;
  const warnings = new Set<string>();
  do {
    const outcome: Outcome<unknown> = await api<unknown>('rules', { exclude_alerts: 'true', group_limit: PAGE_GROUPS, group_next_token: token ?? undefined }, { signal: abort });
    // The group of a token may be gone after a reload: from the beginning, once.
    if (!outcome.ok && outcome.status === 400 && token !== null && turn++ === 0) {
      groups.length = 0;
      token = null;
      continue;
    }
    if (!outcome.ok) return outcome;
    const page: Shaped<typeof PAGE> = shaped(outcome.data, PAGE);
    groups.push(...page.groups);
    token = page.groupNextToken;
    mayReload = page.mayReload;
    for (const text of outcome.warnings) warnings.add(text);
    if (token === null) break;
  } while (true);
  return { ok: true, data: { groups, rules: groups.flatMap(rulesOf), mayReload, warnings: [...warnings] }, warnings: [], infos: [], took_ms: performance.now() - began };
}

/** A time of an answer in milliseconds; NaN where there is none. Go writes the year 1 for none. */
export function msOf(text: string | null): number {
  return text === null || text.startsWith('0001-') ? NaN : Date.parse(text);
}

/** Labels as people write them. */
export function labelsText(labels: Labels): string {
  return Object.entries(labels).map(([name, value]) => `${labelText(name)}=${quoted(value)}`).join(', ');
}

export const isFailing = (rule: Plain) => rule.health === 'err' || (rule.corrections?.failure ?? '') !== '';
export const isBehind = (rule: Rule) => rule.corrections?.isPending === true;
const isAlerting = (rule: Rule) => rule.type === 'alerting';

/** Which rules are shown, by the word in the address. */
export const ONLY: Record<string, (rule: Rule) => boolean> = {
  failing: isFailing, behind: isBehind, recording: (rule) => !isAlerting(rule), alerting: isAlerting,
};

/** Names a group in the address. */
export const groupId = ({ file, name }: Group) => `${file};${name}`;

/** Those of a group, if one is named, in which all words of the filter occur. */
export function matching(rules: Rule[], filter: string, only: string, group: string | null): Rule[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const is = Object.hasOwn(ONLY, only) ? ONLY[only]! : () => true;
  return rules.filter((rule) => {
    if (!is(rule) || (group !== null && groupId(rule.group) !== group)) return false;
    const text = `${rule.name}\n${rule.group.name}\n${rule.group.file}\n${rule.query}\n${labelsText(rule.labels)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
