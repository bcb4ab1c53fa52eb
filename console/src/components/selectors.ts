// The selectors in an expression.

import { LanguageType, promQLLanguage } from '@prometheus-io/codemirror-promql';

/** Each selector once, without ranges, offsets and times. */
export function selectorsOf(...texts: string[]): string[] {
  const { parser } = promQLLanguage(LanguageType.PromQL);
  const found = new Set<string>();
  for (const text of texts) {
    parser.parse(text).iterate({ enter: (node) => { if (node.name === 'VectorSelector') found.add(text.slice(node.from, node.to)); } });
  }
  return [...found];
}
