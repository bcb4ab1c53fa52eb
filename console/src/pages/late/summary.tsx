// The share of late samples, and quantiles of their ages.

import { count } from '../../format';
import type { Figures } from './ask';
import { ageText, shareText } from './text';

function Figure({ title, value, note }: { title: string; value: string; note?: string }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{value}{note && <small>{note}</small>}</dd>
    </div>
  );
}

export function Summary({ total, error }: { total: Required<Figures>; error: number }) {
  const age = (ms: number) => (total.lateSamples > 0 ? ageText(ms) : '–');
  return (
    <>
      <dl class="figure-list">
        <Figure title="Late" value={shareText(total.lateSamples, total.samples)} note={`${count(total.lateSamples)} of ${count(total.samples)} samples`} />
        <Figure title="Age p50" value={age(total.lateAgeMs.p50)} note="half are no older" />
        <Figure title="Age p90" value={age(total.lateAgeMs.p90)} />
        <Figure title="Age p99" value={age(total.lateAgeMs.p99)} />
        <Figure title="Oldest" value={age(total.lateAgeMs.max)} note="exact" />
      </dl>
      <p class="hint">Ages are of late samples only, behind the newest of their series. Quantiles are never too small, and at most {100 * error}&#x202f;% too large.</p>
    </>
  );
}
