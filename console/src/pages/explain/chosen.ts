// The node that is chosen, and which nodes are open.

import { computed, signal } from '@preact/signals';
import { page, params, setParams, type Change } from '../../route';
import type { Node } from './nodes';

const WAIT_MS = 150;

/** Whether a text is a number of a node, or of levels. */
export const isNumber = (text: string) => /^\d+$/.test(text);

function named(): number | null {
  const text = params.value.get('node') ?? '';
  return isNumber(text) ? Number(text) : null;
}

/** The number of the node that was chosen; null while the page chooses. */
export const chosen = signal<number | null>(null);
computed(named).subscribe((id) => { chosen.value = id; });

let timer: ReturnType<typeof setTimeout> | undefined;

/** Chooses a node. A key that is held chooses many, more than a browser lets into its address. */
export function choose(id: number): void {
  chosen.value = id;
  clearTimeout(timer);
  timer = setTimeout(() => { if (page.peek() === 'explain') put({}); }, WAIT_MS);
}

/** Puts a change in the address, with the node that is chosen. */
function put(change: Change): void {
  clearTimeout(timer);
  setParams({ node: chosen.peek() === null ? null : String(chosen.peek()), ...change }, true);
}

/** Chooses nothing, also not later. */
export function forget(): void {
  clearTimeout(timer);
  chosen.value = null;
}

const depth = computed(() => {
  const text = params.value.get('depth') ?? '';
  return isNumber(text) ? Number(text) : Infinity;
});
const fold = computed(() => new Set((params.value.get('fold') ?? '').split(',').filter(isNumber).map(Number)));

/** Whether the parts of a node are shown. */
export function isOpen(node: Node): boolean {
  return node.children.length > 0 && node.depth < depth.value !== fold.value.has(node.id);
}

function setFold(next: Set<number>): void {
  put({ fold: next.size > 0 ? [...next].sort((a, b) => a - b).join(',') : null });
}

/** Shows or hides the parts of a node. */
export function toggle(node: Node): void {
  const next = new Set(fold.peek());
  if (!next.delete(node.id)) next.add(node.id);
  setFold(next);
}

/** Opens as many levels; all without a number. */
export function setDepth(levels: number | null): void {
  put({ depth: levels === null ? null : String(levels), fold: null });
}

/** Chooses a node and opens what it is in. */
export function reveal(nodes: Node[], id: number): void {
  const next = new Set(fold.peek());
  for (let parent = nodes[id]?.parent; parent != null; parent = nodes[parent]?.parent) {
    const node = nodes[parent];
    if (node && !isOpen(node) && !next.delete(parent)) next.add(parent);
  }
  chosen.value = id;
  setFold(next);
}

/** The nodes in sight. */
export function visible(nodes: Node[]): Node[] {
  const shown: Node[] = [];
  let closed = Infinity;
  for (const node of nodes) {
    if (node.depth > closed) continue;
    closed = isOpen(node) ? Infinity : node.depth;
    shown.push(node);
  }
  return shown;
}
