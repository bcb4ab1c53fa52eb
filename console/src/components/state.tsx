// Whether all is well, in one word, and what needs attention.

import type { ComponentChildren } from 'preact';
import { href } from '../route';

export type Kind = 'good' | 'loading' | 'bad';
const LAMPS: Record<Kind, string> = { good: '✓', loading: '…', bad: '!' };

export interface Matter {
  isError: boolean;
  text: string;
  /** The page that tells more. */
  page?: string;
}

/** `children` stand between the word and the matters. */
export function StateCard({ word, kind, matters, children }: { word: string; kind: Kind; matters: Matter[]; children?: ComponentChildren }) {
  return (
    <section class={`card state ${kind}`} aria-label="State">
      <p class="word" role="status"><span class="lamp" aria-hidden="true">{LAMPS[kind]}</span>{word}</p>
      <div>
        {children}
        {matters.length === 0 && kind === 'good' && <p class="hint">Nothing needs attention.</p>}
        <ul class="matters">{matters.map((one) => <li key={one.text} class={one.isError ? 'bad' : 'warn'}>{one.text}{one.page && <> <a href={href(one.page)}>Show {one.page}</a></>}</li>)}</ul>
      </div>
    </section>
  );
}
