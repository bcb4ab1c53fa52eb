// Why a query has no result: the node where the series end.

import { count } from '../../format';
import { partsOf, type Node } from './nodes';

const COMPARISONS = new Set(['==', '!=', '>', '<', '>=', '<=']);

/** The part that has to be asked why there is nothing; null where it is the node itself. */
function emptyPart(nodes: Node[], node: Node): Node | null {
  const parts = partsOf(nodes, node);
  const [left = null, right = null] = parts;
  if (node.matching) {
    if (node.matching.left.series === 0) return left;
    return node.matching.right.series === 0 && node.name !== 'unless' ? right : null;
  }
  return parts.find((part) => part.evaluated && part.series === 0 && (part.type === 'vector' || part.type === 'matrix')) ?? null;
}

/** Whether it reads series from storage. */
export function isSelector(node: Node): boolean {
  return node.kind === 'selector' || node.kind === 'range_selector';
}

function reason(node: Node): string {
  if (isSelector(node)) {
    const found = node.seriesRead ?? 0;
    return found === 0 ? 'No series match this selector.' : `${count(found)} series match this selector, but none has samples at this time.`;
  }
  if (node.matching?.pairs === 0) return 'No series of the left side matches one of the right side.';
  if (COMPARISONS.has(node.name)) return 'The comparison removes all series.';
  if (node.name === 'unless') return 'Each series of the left side has a partner on the right side, so that unless removes it.';
  if (node.matching) return 'Series match, but no two that match have samples at the same step.';
  return 'This part gives no series.';
}

/** The node because of which there is no result, and why; null where there is one. */
export function emptiness(nodes: Node[]): { node: Node; why: string } | null {
  let node = nodes[0];
  if (!node?.evaluated || node.series !== 0) return null;
  for (let part = emptyPart(nodes, node); part; part = emptyPart(nodes, node)) node = part;
  return { node, why: reason(node) };
}
