// Ages, shares and delays as texts.

import { durationText } from '../../clock';

const UNITS: [string, number][] = [['y', 31_536_000_000], ['d', 86_400_000], ['h', 3_600_000], ['m', 60_000], ['s', 1000]];

/** An age of about three digits, or two units: `128ms`, `1.02s`, `17m28s`, `34y45d`. */
export function ageText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${Number((ms / 1000).toPrecision(3))}s`;
  const at = UNITS.findIndex(([, size]) => ms >= size);
  const [unit, size] = UNITS[at]!;
  const [next, nextSize] = UNITS[at + 1]!;
  const rest = Math.floor((ms % size) / nextSize);
  return `${Math.floor(ms / size)}${unit}${rest > 0 ? `${rest}${next}` : ''}`;
}

/** A duration in whole seconds, as PromQL writes it. */
export function secondsText(ms: number): string {
  return durationText(Math.floor(ms / 1000) * 1000);
}

/** A share in percent, with three digits: `4.52 %`; `< 0.001 %` where it is small, but not none. */
export function shareText(part: number, of: number): string {
  if (part === 0 || of === 0) return '0\u202f%';
  const percent = (100 * part) / of;
  if (percent < 0.001) return '<\u202f0.001\u202f%';
  // All but a few is not all.
  return `${percent < 100 && percent > 99.9 ? '>\u202f99.9' : Number(percent.toPrecision(3))}\u202f%`;
}

const ROUND_MS = [1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10_800, 14_400, 21_600,
  28_800, 43_200, 64_800, 86_400].map((seconds) => seconds * 1000);

/** A round duration that is no shorter, as PromQL writes it: `90s` is `1m30s`. */
export function roundUp(ms: number): string {
  return durationText(ROUND_MS.find((round) => round >= ms) ?? Math.ceil(ms / 86_400_000) * 86_400_000);
}
