// Times as texts, with a clock of 24 hours, in the zone that the user chose; and texts as times.

import { stored } from './stored';

export type Zone = 'local' | 'utc';

/** The zone of all times that are shown. */
export const zone = stored<Zone>('zone', 'local');

const two = (value: number) => String(value).padStart(2, '0');

/** A date whose UTC fields read as the chosen zone's clock. */
export function shifted(ms: number): Date {
  const date = new Date(ms);
  return zone.value === 'utc' ? date : new Date(ms - date.getTimezoneOffset() * 60_000);
}

function unshifted(ms: number): number {
  if (zone.peek() === 'utc') return ms;
  const date = new Date(ms);
  return new Date(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate(), date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds(), date.getUTCMilliseconds()).getTime();
}

/** `2026-11-24 13:05:09`, with milliseconds where there are some. */
export function timeText(ms: number): string {
  const date = shifted(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  const text = date.toISOString().replace('T', ' ');
  return ms % 1000 === 0 ? text.slice(0, -5) : text.slice(0, -1);
}

/** The same in whole seconds. */
export function secondText(ms: number): string {
  return timeText(Math.floor(ms / 1000) * 1000);
}

/** `13:05:09`. */
export function clockText(ms: number): string {
  const date = shifted(ms);
  return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`;
}

const UNITS: [string, number][] = [['w', 604_800_000], ['d', 86_400_000], ['h', 3_600_000], ['m', 60_000], ['s', 1000], ['ms', 1]];

/** A duration as PromQL writes it: `1h30m`. Weeks are whole: `30d`. */
export function durationText(ms: number): string {
  let rest = Math.round(ms);
  let text = '';
  for (const [unit, size] of UNITS) {
    if (unit === 'w' && rest % size !== 0) continue;
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text || '0s';
}

/** Reads `1h30m`, `90s`, `1.5h` or seconds; null where it is none. */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Math.round(Number(trimmed) * 1000) || null;
  if (!/^(\d+(\.\d+)?(ms|y|w|d|h|m|s))+$/.test(trimmed)) return null;
  let sum = 0;
  for (const [, count, unit] of trimmed.matchAll(/(\d+(?:\.\d+)?)(ms|y|w|d|h|m|s)/g)) {
    const size = unit === 'y' ? 365 * 86_400_000 : UNITS.find(([name]) => name === unit)?.[1] ?? 0;
    sum += Number(count) * size;
  }
  return Math.round(sum) || null;
}

/** Reads `2026-11-24 13:05[:09[.123]]` in the chosen zone, RFC 3339, or seconds; null where it is none. */
export function parseTime(text: string): number | null {
  const trimmed = text.trim();
  if (/^-?\d+(\.\d+)?$/.test(trimmed)) return Math.round(Number(trimmed) * 1000);
  const plain = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?))?$/.exec(trimmed);
  if (plain) {
    const ms = Date.parse(`${plain[1]}T${plain[2] ?? '00:00'}Z`);
    return Number.isNaN(ms) ? null : unshifted(ms);
  }
  const ms = /^\d{4}-/.test(trimmed) ? Date.parse(trimmed) : NaN;
  return Number.isNaN(ms) ? null : ms;
}
