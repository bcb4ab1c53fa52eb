// What a page says where it has nothing else to show: errors, emptiness, waiting.

import type { ComponentChildren } from 'preact';
import type { Failure } from '../api';

/** What went wrong, and what to do about it. */
export function ErrorBox({ failure, retry, children }: { failure: Failure; retry?: () => void; children?: ComponentChildren }) {
  return (
    <div class="notice error" role="alert">
      <p><strong>{failure.kind}</strong> {failure.text}</p>
      {children}
      {retry && <button type="button" onClick={retry}>Try again</button>}
    </div>
  );
}

/** What went wrong with one query, in a line. */
export function FailureLine({ failure }: { failure: Failure }) {
  return <p class="error" role="alert"><strong>{failure.kind}</strong> {failure.text}</p>;
}

/** Nothing to show: why, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="notice empty" role="status">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export interface Remark {
  level: 'warning' | 'info';
  text: string;
}

/** Remarks of one level. */
export const remarks = (level: Remark['level'], texts: string[]): Remark[] => texts.map((text) => ({ level, text }));

/** Warnings and information beside what they are about; `tool` stands behind the one at a place. */
export function Remarks({ all, tool }: { all: Remark[]; tool?: (at: number) => ComponentChildren }) {
  if (all.length === 0) return null;
  return <ul class="remarks">{all.map(({ level, text }, at) => <li class={level} key={at}><span>{level}</span>{text}{tool && <> {tool(at)}</>}</li>)}</ul>;
}

/** A server without series: how to write a sample, and what to do `then`. */
export function NoSeries({ then }: { then: string }) {
  return (
    <Empty title="No series yet">
      <p>Write a sample, then {then}:</p>
      <code>curl --data-binary 'room,site=north temp=20.5' {location.origin}/write</code>
    </Empty>
  );
}

/** A line that moves while something is under way; it keeps its place when nothing is. */
export function Busy({ on }: { on: boolean }) {
  return <div class={`busy ${on ? 'on' : ''}`} role="progressbar" aria-label="Loading" aria-hidden={!on} />;
}
