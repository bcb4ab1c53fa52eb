// A query in which the sides of an operation match otherwise.

import { LanguageType, promQLLanguage } from '@prometheus-io/codemirror-promql';
import { labelText, quoted } from '../../format';
import type { Suggestion } from './advice';
import type { Matching } from './nodes';

interface Part {
  from: number;
  to: number;
}

interface Operation {
  left: Part;
  right: Part;
  /** The operator, with `bool`. */
  operator: Part;
  /** `on(...)` or `ignoring(...)`, with what belongs to it. */
  clause: Part | null;
}

/** The operation that is written from `from` to `to`. */
function operationAt(text: string, from: number, to: number): Operation | null {
  const { parser } = promQLLanguage(LanguageType.PromQL);
  let found: Operation | null = null;
  parser.parse(text).iterate({
    enter: ({ node }) => {
      if (found || node.from > from || node.to < to) return false;
      if (node.name !== 'BinaryExpr' || node.from !== from || node.to !== to) return;
      const [left, right] = [node.firstChild, node.lastChild];
      const operator = left?.nextSibling;
      if (!left || !right || !operator) return;
      const end = node.getChild('BoolModifier')?.to ?? operator.to;
      found = { left, right, operator: { from: operator.from, to: end }, clause: node.getChild('MatchingModifierClause') };
    },
  });
  return found;
}

const list = (labels: string[]) => `(${labels.map(labelText).join(', ')})`;

/** The modifiers of a suggestion. */
export function modifiers(suggested: Suggestion, matching: Matching, by: 'on' | 'ignoring'): string {
  const labels = by === 'on' ? suggested.on : suggested.ignoring;
  const include = suggested.group && matching.include.length > 0 ? ` ${list(matching.include)}` : '';
  return `${by} ${list(labels)}${suggested.group ? ` ${suggested.group}${include}` : ''}`;
}

/** The right side, with the label that the left one has, and aggregated if it must be. */
function rightSide(text: string, { on: [label = ''], on, renamed, isAggregated }: Suggestion): string {
  const named = renamed === null ? text : `label_replace(${text}, ${quoted(label)}, "$1", ${quoted(renamed)}, "(.*)")`;
  return isAggregated ? `sum by ${list(on)} (${named})` : named;
}

/** The query with the suggestion; null where the operation is not found in it. */
export function rewritten(text: string, from: number, to: number, suggested: Suggestion, matching: Matching, by: 'on' | 'ignoring'): string | null {
  const operation = operationAt(text, from, to);
  if (!operation) return null;
  const { operator, clause, right } = operation;
  const between = text.slice(clause?.to ?? operator.to, right.from);
  const side = rightSide(text.slice(right.from, right.to), suggested);
  const match = modifiers(suggested, matching, by);
  // Parentheses behind group_left would be read as its labels.
  const empty = side.startsWith('(') && /group_(left|right)$/.test(match) ? ' ()' : '';
  return [text.slice(0, operator.to), ' ', match, empty, between.trim() === '' ? ' ' : between, side, text.slice(right.to)].join('');
}
