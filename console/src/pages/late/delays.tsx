// How long a rule or an alert waits until nearly all samples have come.

import type { Figures } from './ask';
import { ageText, roundUp } from './text';

function Delay({ share, missing, ms }: { share: string; missing: string; ms: number }) {
  if (ms === 0) {
    return <li><strong>{share}</strong> need no delay: fewer than {missing} come late.</li>;
  }
  return (
    <li>
      <strong>{share}</strong> have come after <strong>{ageText(ms)}</strong>: write <code>offset {roundUp(ms)}</code>.
    </li>
  );
}

export function Delays({ total }: { total: Required<Figures> }) {
  const { p99, p999 } = total.delayMs;
  const shown = roundUp(p99 || p999 || 1000);
  return (
    <div class="delays">
      <h2>Delay for rules and alerts</h2>
      <ul>
        <Delay share="99 % of samples" missing="1 %" ms={p99} />
        <Delay share="99.9 % of samples" missing="0.1 %" ms={p999} />
      </ul>
      <p>
        An alert or a recording rule that is evaluated only once must look that far back, as in <code>rate(requests_total[5m] offset {shown}) &gt; 10</code>;
        it then misses no more than the rest. Compaction rules need no delay: Latewood corrects a closed bucket within seconds after a late sample. What copies
        buckets elsewhere once should read them {shown} after their end.
      </p>
    </div>
  );
}
