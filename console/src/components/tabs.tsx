// A row of tabs, of which the address keeps the chosen one, and the panel that it shows. The row is
// one stop for Tab; the arrows, Home and End choose in it.

import type { ComponentChildren } from 'preact';
import { setParams, type Change } from '../route';

interface Properties<Name> {
  label: string;
  /** The parameter of the address; without it the first tab holds. */
  param: string;
  tabs: [name: Name, title: string, hint?: string][];
  chosen: Name;
  /** What else a choice changes in the address. */
  also?: Change;
}

export function Tabs<Name extends string>({ label, param, tabs, chosen, also }: Properties<Name>) {
  const choose = (at: number) => setParams({ ...also, [param]: at === 0 ? null : tabs[at]![0] });
  const key = (event: KeyboardEvent & { currentTarget: HTMLElement }) => {
    const at = tabs.findIndex(([name]) => name === chosen);
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 }[event.key];
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const to = (next + tabs.length) % tabs.length;
    (event.currentTarget.children[to] as HTMLElement).focus();
    choose(to);
  };
  return (
    <div role="tablist" aria-label={label} onKeyDown={key}>
      {tabs.map(([name, title, hint], at) => (
        <button key={name} type="button" role="tab" id={`${param}-${name}`} aria-controls={`${param}-panel`} aria-selected={name === chosen}
          tabIndex={name === chosen ? 0 : -1} title={hint} onClick={() => choose(at)}>{title}</button>
      ))}
    </div>
  );
}

/** What the chosen tab shows. */
export function TabPanel({ param, chosen, children }: { param: string; chosen: string; children: ComponentChildren }) {
  return <div role="tabpanel" id={`${param}-panel`} aria-labelledby={`${param}-${chosen}`}>{children}</div>;
}
