// Selectors that are made of others.

import { LanguageType, promQLLanguage } from '@prometheus-io/codemirror-promql';
import { labelText, quoted, seriesText } from '../../format';

/** Whether a selector names its metric, as in `up{...}` and `{"up", ...}`: then it has no other. */
function isNamed(selector: string): boolean {
  let found = false;
  promQLLanguage(LanguageType.PromQL).parser.parse(selector).iterate({
    enter: ({ name, node }) => {
      const within = node.parent?.name;
      found ||= (name === 'QuotedLabelName' && within === 'LabelMatchers') || (name === 'Identifier' && within === 'VectorSelector');
    },
  });
  return found;
}

/** A selector with one matcher more. */
export function narrowed(filter: string, label: string, operator: string, value: string): string {
  const text = filter.trim();
  if (text === '' && label === '__name__' && operator === '=') return seriesText({ __name__: value });
  if (label === '__name__' && isNamed(text)) return text;
  const matcher = `${labelText(label)}${operator}${quoted(value)}`;
  if (!text.endsWith('}')) return `${text}{${matcher}}`;
  const inside = text.slice(0, -1).trimEnd();
  return `${inside}${/[{,]$/.test(inside) ? '' : ', '}${matcher}}`;
}

/** How many series there are of each value of a label. */
export function counted(label: string, selector: string): string {
  return `count by (${labelText(label)}) (${selector})`;
}
