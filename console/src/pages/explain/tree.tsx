// The nodes as a tree with columns. Only rows in sight are drawn; the tree itself has the focus and
// names the row that is chosen, so that a row may leave the page.

import { useLayoutEffect } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { useWindow } from '../../components/window';
import { bytes, count, UNKNOWN } from '../../format';
import { choose, isOpen, toggle, visible } from './chosen';
import { brief, kindText, seriesIn, share, timeOf, type Node } from './nodes';

const ROW_PX = 30;
const HEAD_PX = 32;
const PAGE = 10;
/** Deeper nodes are not indented further; they tell their depth instead. */
const INDENTS_MAX = 8;

interface Column {
  title: string;
  hint: string;
  /** The name in CSS. */
  name: string;
  cell: (node: Node, nodes: Node[]) => ComponentChildren;
}

const figure = (value: number | undefined, text: (value: number) => string) => (value === undefined ? UNKNOWN : text(value));

function Share({ node, nodes }: { node: Node; nodes: Node[] }) {
  const [own, total] = [share(nodes, node.ownMs), share(nodes, node.totalMs)];
  return (
    <span class="share" role="img" aria-label={`${Math.round(own * 100)} % of the whole by itself, ${Math.round(total * 100)} % with its parts`}>
      <span class="total" style={{ width: `${total * 100}%` }} />
      <span class="own" style={{ width: `${own * 100}%` }} />
    </span>
  );
}

const COLUMNS: Column[] = [
  { name: 'kind', title: 'Kind', hint: 'What it is', cell: kindText },
  { name: 'in', title: 'In', hint: 'Series that its parts gave, or that it found in storage', cell: (node, nodes) => figure(seriesIn(nodes, node), brief) },
  { name: 'out', title: 'Out', hint: 'Series that it gave', cell: (node) => figure(node.series, brief) },
  { name: 'samples', title: 'Samples', hint: 'Samples that it gave', cell: (node) => figure(node.samples, brief) },
  { name: 'read', title: 'Read', hint: 'Samples that it read from storage', cell: (node) => figure(node.samplesRead, brief) },
  { name: 'late', title: 'Late', hint: 'Late samples that were merged', cell: (node) => figure(node.lateSamplesMerged, brief) },
  { name: 'memory', title: 'Memory', hint: 'The most that it held itself', cell: (node) => figure(node.peakBytes, bytes) },
  { name: 'own-time', title: 'Own', hint: 'Its own time, without its parts', cell: (node) => figure(node.ownMs, timeOf) },
  { name: 'total-time', title: 'Total', hint: 'Its time with all its parts', cell: (node) => (node.evaluated ? timeOf(node.totalMs) : UNKNOWN) },
  { name: 'bar', title: 'Share', hint: 'Its share of the time of the whole: by itself dark, with its parts pale', cell: (node, nodes) => <Share node={node} nodes={nodes} /> },
];

interface RowProperties {
  node: Node;
  nodes: Node[];
  isChosen: boolean;
  isMarked: boolean;
  onChoose: (id: number) => void;
}

function Row({ node, nodes, isChosen, isMarked, onChoose }: RowProperties) {
  const siblings = node.parent === null ? [0] : nodes[node.parent]?.children ?? [];
  const hasParts = node.children.length > 0;
  const isOperator = node.kind === 'binary' || node.kind === 'unary';
  const place = { 'aria-setsize': siblings.length, 'aria-posinset': siblings.indexOf(node.id) + 1 };
  return (
    <div role="row" id={`node-${node.id}`} class={`node ${isChosen ? 'chosen' : ''} ${node.evaluated ? '' : 'idle'}`} aria-level={node.depth + 1}
      aria-selected={isChosen} aria-expanded={hasParts ? isOpen(node) : undefined} {...place} onClick={() => onChoose(node.id)}>
      <span role="gridcell" class="expression" style={{ paddingLeft: `calc(${Math.min(node.depth, INDENTS_MAX)} * var(--indent))` }}>
        <span class="twist" aria-hidden="true" onClick={(event) => { if (hasParts) { event.stopPropagation(); onChoose(node.id); toggle(node); } }}>
          {hasParts ? (isOpen(node) ? '\u25be' : '\u25b8') : ''}
        </span>
        {node.depth > INDENTS_MAX && <span class="level">{node.depth}</span>}
        {isMarked && <span class="marked" title="There is a warning or information about it">!</span>}
        {isOperator && <b>{node.name}</b>}
        <code>{node.text}</code>
        {node.childrenOmitted > 0 && <span class="level">+ {count(node.childrenOmitted)} parts left out</span>}
      </span>
      {COLUMNS.map((column) => <span key={column.name} role="gridcell" class={column.name}>{column.cell(node, nodes)}</span>)}
    </div>
  );
}

/** What a key does with the node that is chosen, at `at` of those in sight; false for other keys. */
function press(key: string, shown: Node[], at: number, onChoose: (id: number) => void): boolean {
  const node = shown[at];
  const move = (to: number) => {
    const next = shown[Math.max(0, Math.min(shown.length - 1, to))];
    if (next && next !== node) onChoose(next.id);
  };
  switch (key) {
    case 'ArrowDown': move(at + 1); break;
    case 'ArrowUp': move(at - 1); break;
    case 'PageDown': move(at + PAGE); break;
    case 'PageUp': move(at - PAGE); break;
    case 'Home': move(0); break;
    case 'End': move(shown.length - 1); break;
    case 'ArrowRight':
      if (node && node.children.length > 0) { if (isOpen(node)) move(at + 1); else toggle(node); }
      break;
    case 'ArrowLeft':
      if (node && isOpen(node)) toggle(node);
      else if (node && node.parent !== null) onChoose(node.parent);
      break;
    case 'Enter':
    case ' ':
      if (node && node.children.length > 0) toggle(node);
      break;
    default: return false;
  }
  return true;
}

/** The rows in sight, to which the one that is chosen comes, however it was chosen. */
function useShown(at: number, length: number) {
  const sight = useWindow(length, ROW_PX);
  const { box, onScroll } = sight;
  useLayoutEffect(() => {
    const shown = box.current;
    if (!shown || at < 0) return;
    const [above, below] = [at * ROW_PX, (at + 1) * ROW_PX + HEAD_PX - shown.clientHeight];
    if (shown.scrollTop > above) shown.scrollTop = above;
    else if (shown.scrollTop < below) shown.scrollTop = below;
    onScroll();
  }, [at]);
  return sight;
}

export function Tree({ nodes, chosen, marked }: { nodes: Node[]; chosen: number; marked: Set<number> }) {
  const shown = visible(nodes);
  const at = shown.findIndex((node) => node.id === chosen);
  const { box, first, last, onScroll } = useShown(at, shown.length);
  const pressed = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !press(event.key, shown, at, choose)) return;
    event.preventDefault();
  };
  return (
    <div class="tree" ref={box} role="treegrid" tabIndex={0} aria-label="Nodes of the query" aria-rowcount={shown.length + 1}
      aria-activedescendant={at < 0 ? undefined : `node-${chosen}`} onKeyDown={pressed} onScroll={onScroll}>
      <div role="row" class="node head">
        <span role="columnheader" class="expression">Expression</span>
        {COLUMNS.map((column) => <span key={column.name} role="columnheader" class={column.name} title={column.hint}>{column.title}</span>)}
      </div>
      <div role="presentation" style={{ height: `${first * ROW_PX}px` }} />
      {shown.slice(first, last).map((node) => (
        <Row key={node.id} node={node} nodes={nodes} isChosen={node.id === chosen} isMarked={marked.has(node.id)} onChoose={choose} />
      ))}
      <div role="presentation" style={{ height: `${(shown.length - last) * ROW_PX}px` }} />
    </div>
  );
}
