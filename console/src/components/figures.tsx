// Figures with their names; CSS of the page says how they stand.

import type { ComponentChildren } from 'preact';

export type Figure = [name: string, value: ComponentChildren, isBad?: boolean];

export function FigureList({ kind, all }: { kind: string; all: Figure[] }) {
  return <dl class={kind}>{all.map(([name, value, isBad]) => <div key={name}><dt>{name}</dt><dd class={isBad ? 'bad' : ''}>{value}</dd></div>)}</dl>;
}
