// The failed buckets of one rule, and how that ends.

import { useEffect, useRef } from 'preact/hooks';
import { timeText } from '../../clock';
import { count } from '../../format';
import { setParams } from '../../route';
import { Key } from './columns';
import type { Rule } from './rule';

const SPANS_MAX = 100;

export function Failed({ rule }: { rule: Rule }) {
  const button = useRef<HTMLButtonElement>(null);
  // The keys go on here, and then in the table below.
  useEffect(() => button.current?.focus(), [rule.destination]);
  const close = () => {
    setParams({ rule: null });
    document.querySelector<HTMLElement>('.compaction .table')?.focus();
  };
  return (
    <section class="card one failed" aria-labelledby="failed" onKeyDown={(event) => { if (event.key === 'Escape') close(); }}>
      <div class="row">
        <h2 id="failed">{count(rule.failed_buckets)} failed {rule.failed_buckets === 1 ? 'bucket' : 'buckets'}</h2>
        <span class="gap" />
        <button type="button" ref={button} onClick={close}>Close</button>
      </div>
      <p>of <Key name={rule.destination} />, from <Key name={rule.source} /></p>
      {rule.failed_buckets > 0 ? (
        <>
          <ul tabIndex={0} aria-label="Failed buckets">
            {rule.failed.map((span) => <li key={span.first_ms}><code>{timeText(span.first_ms)} to {timeText(span.last_ms)}</code></li>)}
            {rule.failed.length >= SPANS_MAX && <li class="hint">Later ones may be left out.</li>}
          </ul>
          <p class="hint">
            Damaged samples of the source keep them from being recomputed; reads of them are errors. This ends with TS.DEL over the damaged
            samples, with a restart after the file was repaired, with TS.DELETERULE, or when the samples pass the retention.
          </p>
        </>
      ) : <p class="hint">This rule has none now.</p>}
    </section>
  );
}
