// What the Query page is asked to show, all of it in the address:
//   q      an expression; several times for several queries
//   off    places of the queries that are disabled, from 0: `off=1,3`
//   view   `graph`, `table` or `json`
//   step   a duration; without it the step fits the span and the width
//   refresh  a duration between automatic runs
//   look   letters: s(tacked), z(ero), l(og), p(oints); not s and l together
//   heat   the histogram that is drawn as a heat map, as a hash; `on` is the first
//   hide   series that the legend has switched off, as hashes
//   range, from, to  as in components/span.ts
// checks.ts says what is wrong with these.

import { computed, signal } from '@preact/signals';
import { durationText, parseDuration } from '../../clock';
import { spanOf, range, type Span } from '../../components/span';
import type { Look } from '../../components/chart';
import { count } from '../../format';
import { href, page, params, setParams } from '../../route';

export interface Asked {
  text: string;
  isOff: boolean;
}

export type View = 'graph' | 'table' | 'json';

/** The queries, at least one. */
export const asked = computed<Asked[]>(() => {
  const off = new Set((params.value.get('off') ?? '').split(','));
  const texts = params.value.getAll('q');
  return (texts.length > 0 ? texts : ['']).map((text, at) => ({ text, isOff: off.has(String(at)) }));
});

/** Those that are run. */
export const enabled = computed(() => asked.value.filter(({ text, isOff }) => !isOff && text.trim() !== ''));

/** Puts queries in the address. */
export function setAsked(queries: Asked[], replace = false): void {
  const off = queries.flatMap((query, at) => (query.isOff ? [String(at)] : []));
  setParams({ q: queries.map((query) => query.text), off: off.length > 0 ? off.join(',') : null }, replace);
}

export const view = computed<View>(() => {
  const name = params.value.get('view');
  return name === 'table' || name === 'json' ? name : 'graph';
});

export const refresh_ms = computed(() => parseDuration(params.value.get('refresh') ?? ''));

const LETTERS: Record<keyof Look, string> = { stacked: 's', zero: 'z', log: 'l', points: 'p' };

/** Whether these are letters of ways to draw. A stack has no logarithm. */
export const isLook = (letters: string) => /^[szlp]*$/.test(letters) && !(letters.includes('s') && letters.includes('l'));

export const look = computed<Look>(() => {
  const given = params.value.get('look') ?? '';
  const letters = isLook(given) ? given : '';
  return { stacked: letters.includes('s'), zero: letters.includes('z'), log: letters.includes('l'), points: letters.includes('p') };
});

/** Switches one way of drawing. */
export function toggleLook(name: keyof Look): void {
  const next = { ...look.peek(), [name]: !look.peek()[name] };
  if (next.stacked && next.log) next[name === 'log' ? 'stacked' : 'log'] = false;
  const letters = (Object.keys(LETTERS) as (keyof Look)[]).filter((key) => next[key]).map((key) => LETTERS[key]).join('');
  setParams({ look: letters || null }, true);
}

/** The name of the histogram that is drawn; null: lines are. */
export const heat = computed(() => params.value.get('heat') || null);

/** A short name of a series for the address. */
export function hash(text: string): string {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return (value >>> 0).toString(36);
}

/** Whether a text may be such a name. */
export const isHash = (text: string) => /^[0-9a-z]{1,7}$/.test(text);

export const hidden = computed(() => new Set((params.value.get('hide') ?? '').split(',').filter(Boolean)));

/** Shows these series, or hides them. */
export function setHidden(names: Set<string>): void {
  setParams({ hide: names.size > 0 ? [...names].join(',') : null }, true);
}

/** The width of the chart in pixels, for the automatic step. */
export const width_px = signal(1000);

const STEPS_MS = [1, 5, 10, 50, 100, 250, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000];
/** How long a sample counts after its time, in PromQL. */
export const LOOKBACK_MS = 300_000;
/** Steps of an answer that the server allows. */
const STEPS_MAX = 10_900;

/** A step for about one value every three pixels. */
export function automaticStep(span: Span): number {
  const least = (span.to_ms - span.from_ms) / Math.max(100, width_px.peek() / 3);
  return STEPS_MS.find((step) => step >= least) ?? Math.ceil(least / 86_400_000) * 86_400_000;
}

/** What is wrong with the step of the address; null if nothing is. */
export function stepProblem(): string | null {
  const text = params.value.get('step') ?? '';
  const given = parseDuration(text);
  if (text === '') return null;
  if (given === null) return `The address has step=${text}, which is not a duration such as 30s: the step fits the range.`;
  const used = stepOf(spanOf(range.value));
  return used > given ? `A step of ${text} makes more than ${count(STEPS_MAX)} steps: one of ${durationText(used)} is used.` : null;
}

/** The step of a span: that of the address, unless it makes too many. */
function stepOf(span: Span): number {
  const given = parseDuration(params.peek().get('step') ?? '');
  return Math.max(given ?? automaticStep(span), Math.ceil((span.to_ms - span.from_ms) / STEPS_MAX));
}

/**
 * The step, and when to evaluate. The last step of fixed times is their end, which has the newest
 * sample before it. Up to now means up to a whole step after it, so that a chart that goes on does
 * not tremble; of longer steps than a sample counts for, the last one is no later than that.
 */
export function grid(): { step_ms: number; span: Span; start_ms: number; end_ms: number } {
  const span = spanOf(range.peek());
  const step_ms = stepOf(span);
  const align_ms = Math.min(step_ms, LOOKBACK_MS);
  const end_ms = 'from_ms' in range.peek() ? span.to_ms : Math.ceil(span.to_ms / align_ms) * align_ms;
  return { step_ms, span, start_ms: end_ms - Math.floor((end_ms - span.from_ms) / step_ms) * step_ms, end_ms };
}

/** A span that was dragged, with ends on whole steps, since a pixel means no millisecond. */
export function onSteps(span: Span): Span {
  const step_ms = stepOf(span);
  const [from_ms, to_ms] = [span.from_ms, span.to_ms].map((ms) => Math.round(ms / step_ms) * step_ms);
  return from_ms! < to_ms! ? { from_ms: from_ms!, to_ms: to_ms! } : span;
}

/** The range of the address, for links to pages that have one, too. */
export function rangeParams(): Record<string, string> {
  return Object.fromEntries([...params.value].filter(([name]) => name === 'range' || name === 'from' || name === 'to'));
}

const spansBefore = signal<string[]>([]);

/** What zooms belong to: a page, and there what it is about. */
function place(): string {
  return JSON.stringify([page.peek(), params.peek().get('key')]);
}

/** Notes the range of the address, which `zoomBack` returns to. */
export function noteRange(): void {
  const { range = '', from = '', to = '' } = Object.fromEntries(params.peek());
  spansBefore.value = [...spansBefore.peek(), JSON.stringify({ range, from, to, of: place() })].slice(-50);
}

/** The range before the last zoom. */
export function zoomBack(): void {
  const last = spansBefore.peek().at(-1);
  if (last === undefined) return;
  spansBefore.value = spansBefore.peek().slice(0, -1);
  const { range, from, to, of } = JSON.parse(last) as Record<string, string>;
  if (of !== place()) return;
  setParams({ range: range || null, from: from || null, to: to || null, at: null });
}

/** Parameters for another page that shows the same time; empty values are left out. */
export function sameTime(values: Record<string, string>): Record<string, string> {
  const times = Object.fromEntries(['range', 'from', 'to', 'step'].map((name) => [name, params.value.get(name) ?? '']));
  return Object.fromEntries(Object.entries({ ...values, ...times }).filter(([, value]) => value !== ''));
}

/** The Explain page with an expression, at the same time. */
export function explainHref(text: string): string {
  return href('explain', sameTime({ q: text, instant: view.value === 'table' ? '1' : '' }));
}
