// The columns of the tables of rules and groups.

import { durationText } from '../../clock';
import type { Column } from '../../components/table';
import { When } from '../../components/when';
import { count, took, UNKNOWN } from '../../format';
import { href, params } from '../../route';
import { groupId, isBehind, isFailing, msOf, type Corrections, type Group, type Rule } from './rule';

/** A duration of the API, which are seconds. */
export const seconds = (value: number) => (Number.isNaN(value) ? UNKNOWN : durationText(value * 1000));

function At({ text, none }: { text: string | null; none: string }) {
  const ms = msOf(text);
  return <When ms={ms} title={Number.isNaN(ms) ? none : undefined} />;
}

/** This page with what is known of this rule. */
function RuleLink({ rule }: { rule: Rule }) {
  const next = new URLSearchParams(params.value);
  next.set('rule', rule.id);
  return <a class="name" href={href('rules', next)} title={`${rule.name}: ${rule.query}`}>{rule.name || UNKNOWN}</a>;
}

/** Health, or of an alert that can be evaluated its state. */
export function stateText(rule: Rule): string {
  if (rule.health !== 'ok') return { err: 'failed', unknown: 'not yet run' }[rule.health] ?? rule.health;
  return rule.type === 'alerting' ? rule.state : 'ok';
}

/** What late samples do to the rows of a rule, in a word. */
function correctionText(of: Corrections | null): string {
  if (of === null) return UNKNOWN;
  if (!of.corrected) return 'never';
  if (of.failure !== '') return 'failed';
  // How many is known once what changed was looked at.
  return of.isPending ? `${of.pendingSteps > 0 ? `${count(of.pendingSteps)} ` : ''}dirty` : 'up to date';
}

function Correction({ rule }: { rule: Rule }) {
  const of = rule.corrections;
  const kind = of?.failure ? 'bad' : isBehind(rule) ? 'warn' : '';
  const why = of && !of.corrected ? of.reason : of?.failure || undefined;
  return <span class={kind} title={why}>{correctionText(of)}</span>;
}

const GROUP: Column<Rule> = { name: 'group', title: 'Group', by: (row) => row.group.name, cell: (row) => <span title={`${row.group.name}, ${row.group.file}`}>{row.group.name}</span>, width: '116px' };
const RULE: Column<Rule> = { name: 'rule', title: 'Rule', by: (row) => row.name, cell: (row) => <RuleLink rule={row} /> };
const STATE: Column<Rule> = {
  name: 'state', title: 'State', by: stateText, width: '92px',
  cell: (row) => <span class={row.health === 'err' ? 'bad' : row.state === 'firing' ? 'warn' : ''} title={row.lastError || undefined}>{stateText(row)}</span>,
};
const CORRECTIONS: Column<Rule> = { name: 'corrections', title: 'Corrections', by: (row) => (row.corrections === null ? NaN : row.corrections.pendingSteps), cell: (row) => <Correction rule={row} />, width: '112px' };

const FIGURES: Column<Rule>[] = [
  { name: 'run', title: 'Last run', by: (row) => msOf(row.lastEvaluation), cell: (row) => <At text={row.lastEvaluation} none="Not yet" />, width: '92px' },
  { name: 'took', title: 'Took', by: (row) => row.evaluationTime, cell: (row) => took(row.evaluationTime * 1000), isNumber: true, width: '80px' },
  { name: 'rows', title: 'Rows', by: (row) => row.rows, cell: (row) => count(row.rows), isNumber: true, width: '68px' },
];
const LATE: Column<Rule>[] = [
  {
    name: 'final', title: 'Final before', by: (row) => msOf(row.corrections?.final ?? null), width: '112px',
    cell: (row) => <At text={row.corrections?.final ?? null} none="No step is final" />,
  },
  { name: 'delay', title: 'Delay, 99.9 %', by: (row) => row.inputDelay?.p999 ?? NaN, cell: (row) => seconds(row.inputDelay?.p999 ?? NaN), isNumber: true, width: '120px' },
];

/** Of rules. */
export const COLUMNS: Column<Rule>[] = [RULE, GROUP, STATE, ...FIGURES, CORRECTIONS, ...LATE];
/** Of narrow screens: what is wrong is in sight. */
export const NARROW: Column<Rule>[] = [RULE, STATE, CORRECTIONS, ...FIGURES, ...LATE, GROUP];

const sum = (group: Group, figure: (rule: Group['rules'][number]) => number) => group.rules.reduce((all, rule) => all + figure(rule), 0);
const failing = (group: Group) => group.rules.filter(isFailing).length;

/** This page with the rules of this group. */
function GroupLink({ group }: { group: Group }) {
  return <a class="name" href={href('rules', { group: groupId(group) })} title={group.name}>{group.name || UNKNOWN}</a>;
}

/** Of groups. */
export const GROUPS: Column<Group>[] = [
  { name: 'group', title: 'Group', by: (row) => row.name, cell: (row) => <GroupLink group={row} /> },
  { name: 'rules', title: 'Rules', by: (row) => row.rules.length, cell: (row) => count(row.rules.length), isNumber: true, width: '72px' },
  { name: 'failed', title: 'Failed', by: failing, cell: (row) => <span class={failing(row) > 0 ? 'bad' : ''}>{count(failing(row))}</span>, isNumber: true, width: '76px' },
  { name: 'interval', title: 'Interval', by: (row) => row.interval, cell: (row) => seconds(row.interval), isNumber: true, width: '88px' },
  { name: 'run', title: 'Last run', by: (row) => msOf(row.lastEvaluation), cell: (row) => <At text={row.lastEvaluation} none="Not yet" />, width: '100px' },
  {
    name: 'took', title: 'Took', by: (row) => row.evaluationTime, isNumber: true, width: '84px',
    cell: (row) => <span class={row.evaluationTime > row.interval ? 'bad' : ''} title={row.evaluationTime > row.interval ? 'Longer than its interval: evaluations are missed' : undefined}>{took(row.evaluationTime * 1000)}</span>,
  },
  { name: 'rows', title: 'Rows', by: (row) => sum(row, (rule) => rule.rows), cell: (row) => count(sum(row, (rule) => rule.rows)), isNumber: true, width: '72px' },
  { name: 'dirty', title: 'Dirty', by: (row) => sum(row, (rule) => rule.corrections?.pendingSteps || 0), cell: (row) => count(sum(row, (rule) => rule.corrections?.pendingSteps || 0)), isNumber: true, width: '72px' },
  { name: 'file', title: 'File', by: (row) => row.file, cell: (row) => <span title={row.file}>{row.file}</span> },
];

