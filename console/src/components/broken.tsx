// What is wrong in the address. A value that a page cannot use is not replaced in silence: the page
// says what it does instead.

import { durationText, parseDuration } from '../clock';
import { params } from '../route';
import { Remarks, remarks } from './notice';
import { isTime, range } from './span';

/** What is wrong with a part of the address; null if nothing is. */
export type Check = () => string | null;

/** Letters of a value that are shown. */
const SHOWN_MAX = 60;

function said(name: string, text: string, wanted: string, instead: string): string {
  return `The address has ${name}=${text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text}, which is not ${wanted}: ${instead}.`;
}

/** What is said of a value that is not fit. */
export function broken(name: string, isFit: (text: string) => boolean, wanted: string, instead: string): string | null {
  const text = params.value.get(name) ?? '';
  return text === '' || isFit(text) ? null : said(name, text, wanted, instead);
}

/** What is said of those parts of a list with commas that are not fit. */
export function brokenIn(name: string, isFit: (part: string) => boolean, wanted: string, instead: string): string | null {
  const unfit = (params.value.get(name) ?? '').split(',').filter((part) => part !== '' && !isFit(part));
  return unfit.length === 0 ? null : said(name, unfit.join(','), wanted, instead);
}

/** A duration; `others` are words that are fit, too. */
export function durationOf(name: string, instead: string, ...others: string[]): Check {
  const wanted = ['a duration such as 1h30m', ...others].join(' or ');
  return () => broken(name, (text) => others.includes(text) || parseDuration(text) !== null, wanted, instead);
}

/** One of some words; without it the page does what it does without the parameter. */
export function wordOf(name: string, words: string[], instead: string): Check {
  return () => broken(name, (text) => words.includes(text), words.length === 1 ? words[0]! : `one of ${words.join(', ')}`, instead);
}

/** How often a page refreshes, not more often than every `least_ms`. */
export function refreshOf(instead: string, least_ms = 1000): Check {
  const isDuration = durationOf('refresh', instead, 'off');
  const isLong = (text: string) => (parseDuration(text) ?? Infinity) >= least_ms;
  const least = durationText(least_ms);
  return () => isDuration() ?? broken('refresh', isLong, `${least} or more`, `it refreshes every ${least}`);
}

function rangeText(): string {
  const shown = range.value;
  return 'from_ms' in shown ? 'the times of from and to are shown' : `the last ${durationText(shown.last_ms)} is shown`;
}

/** The range of components/span.ts. */
export const RANGE: Check[] = [
  () => durationOf('range', rangeText())(),
  ...['from', 'to'].map((name): Check => () => broken(name, isTime, 'a time in milliseconds', rangeText())),
  () => {
    const [from, to] = [params.value.get('from') ?? '', params.value.get('to') ?? ''];
    if (from === '' && to === '') return null;
    if (from === '' || to === '') return `The address has ${from === '' ? 'to' : 'from'} without ${from === '' ? 'from' : 'to'}: ${rangeText()}.`;
    return isTime(from) && isTime(to) && Number(from) >= Number(to) ? `The address has from=${from}, which is not before to=${to}: ${rangeText()}.` : null;
  },
];

/** Says what the checks find. */
export function Broken({ checks }: { checks: Check[] }) {
  return <Remarks all={remarks('warning', checks.flatMap((check) => check() ?? []))} />;
}
