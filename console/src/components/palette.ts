// Colours of amounts: viridis, whose tones get evenly lighter, so that colour-blind people and grey
// prints tell them apart. More stands out more from the background, dark or light.

const TONES = [[68, 1, 84], [72, 40, 120], [62, 73, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37]];

/** The colour at `part` from 0 to 1 of the scale. */
export function tone(part: number, dark: boolean): string {
  // The ends that are hardly seen on the background are left out.
  const from_end = 0.14 + 0.86 * Math.max(0, Math.min(1, part));
  const at = (dark ? from_end : 1 - from_end) * (TONES.length - 1);
  const [low, high] = [TONES[Math.floor(at)]!, TONES[Math.ceil(at)]!];
  const mixed = low.map((value, of) => Math.round(value + (high[of]! - value) * (at % 1)));
  return `rgb(${mixed.join(', ')})`;
}

/** The ends of a logarithmic scale. */
export interface Scale {
  min: number;
  max: number;
  /** Some amounts are less than `min`. */
  isCut: boolean;
}

/** More decades than colours tell apart. */
const SPAN_MAX = 1e6;

/** The scale of what is more than 0; null where nothing is. */
export function scaleOf(cells: (number | null)[][]): Scale | null {
  let [least, max] = [Infinity, 0];
  for (const column of cells) {
    for (const value of column) {
      if (value === null || value <= 0) continue;
      least = Math.min(least, value);
      max = Math.max(max, value);
    }
  }
  if (max === 0) return null;
  const min = Math.max(least, max / SPAN_MAX);
  return { min, max, isCut: least < min };
}

/** Where an amount lies on the scale. */
export function part(value: number, { min, max }: Scale): number {
  return max <= min ? 1 : Math.log(value / min) / Math.log(max / min);
}
