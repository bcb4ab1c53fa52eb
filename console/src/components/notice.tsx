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

/** Warnings and information beside what they are about. */
export function Remarks({ warnings, infos }: { warnings: string[]; infos: string[] }) {
  if (warnings.length + infos.length === 0) return null;
  return (
    <ul class="remarks">
      {warnings.map((text) => <li class="warning" key={text}><span>warning</span>{text}</li>)}
      {infos.map((text) => <li class="info" key={text}><span>info</span>{text}</li>)}
    </ul>
  );
}

/** A line that moves while something is under way; it keeps its place when nothing is. */
export function Busy({ on }: { on: boolean }) {
  return <div class={`busy ${on ? 'on' : ''}`} role="progressbar" aria-label="Loading" aria-hidden={!on} />;
}
