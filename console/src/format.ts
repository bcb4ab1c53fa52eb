// Numbers and labels as texts.

/** Labels of a series; `__name__` is the metric. */
export type Labels = Record<string, string>;

/** The value of a label, empty without one. Names are anybody's, also those that objects inherit. */
export function labelOf(labels: Labels, name: string): string {
  return Object.hasOwn(labels, name) ? labels[name]! : '';
}

const PLAIN_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const PLAIN_LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** A text in quotes, as PromQL reads it. */
export function quoted(text: string): string {
  return `"${text.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')}"`;
}

/** The name of a label, as PromQL reads it. */
export function labelText(label: string): string {
  return PLAIN_LABEL.test(label) ? label : quoted(label);
}

/** Labels as a selector: `name{a="b"}`. */
export function seriesText(labels: Labels): string {
  const { __name__: name, ...rest } = labels;
  const pairs = Object.entries(rest).map(([label, value]) => `${labelText(label)}=${quoted(value)}`);
  if (name !== undefined && !PLAIN_NAME.test(name)) pairs.unshift(quoted(name));
  const plain = name !== undefined && PLAIN_NAME.test(name) ? name : '';
  return pairs.length > 0 || plain === '' ? `${plain}{${pairs.join(', ')}}` : plain;
}

/** What stands where a figure is not known. */
export const UNKNOWN = '\u2013';

/** A count with thin gaps: `1 234 567`. */
export function count(value: number): string {
  if (Number.isNaN(value)) return UNKNOWN;
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
}

const SIZES: [number, string][] = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];

/** Bytes: `1.5 MiB`. */
export function bytes(value: number): string {
  if (Number.isNaN(value)) return UNKNOWN;
  const [size, unit] = SIZES.find(([size]) => Math.abs(value) >= size) ?? [1, 'B'];
  return `${unit === 'B' ? value : (value / size).toFixed(1)} ${unit}`;
}

const PREFIXES: [number, string][] = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M']];

/** A value for an axis or a legend, with six digits: `12300`, `1.5M`, `0.00125`, `+Inf`. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-5 || size >= 1e15)) return value.toExponential(3);
  const [by, prefix] = PREFIXES.find(([by]) => size >= by) ?? [1, ''];
  return `${Number((value / by).toPrecision(6))}${prefix}`;
}

/** Milliseconds that something took: `0.8 ms`, `1.25 s`. */
export function took(ms: number): string {
  if (Number.isNaN(ms)) return UNKNOWN;
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

/** Cells as a line of CSV. */
export function csvLine(cells: string[]): string {
  return cells.map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell)).join(',');
}

/** Lets the browser save `content` as a file. */
export function download(name: string, content: BlobPart | BlobPart[], type: string): void {
  const url = URL.createObjectURL(new Blob([content].flat(), { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** How many UTF-16 units of a text its first `bytes` of UTF-8 are: the server counts bytes. */
export function unitsOf(text: string, bytes: number): number {
  const before = new TextEncoder().encode(text).slice(0, Math.max(0, bytes));
  return Math.min(text.length, new TextDecoder('utf-8', { ignoreBOM: true }).decode(before).length);
}
