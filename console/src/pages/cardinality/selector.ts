// Selectors that are made of others.

import { labelText, quoted, seriesText } from '../../format';

/** A selector with one matcher more. */
export function narrowed(filter: string, label: string, operator: string, value: string): string {
  const text = filter.trim();
  if (text === '' && label === '__name__' && operator === '=') return seriesText({ __name__: value });
  const matcher = `${labelText(label)}${operator}${quoted(value)}`;
  if (!text.endsWith('}')) return `${text}{${matcher}}`;
  const inside = text.slice(0, -1).trimEnd();
  return `${inside}${/[{,]$/.test(inside) ? '' : ', '}${matcher}}`;
}

/** How many series there are of each value of a label. */
export function counted(label: string, selector: string): string {
  return `count by (${labelText(label)}) (${selector})`;
}

/** The label and the value of a pair `label=value`. */
export function pair(text: string): [label: string, value: string] {
  const at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
}
