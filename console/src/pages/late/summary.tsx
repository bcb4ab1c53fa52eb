// The share of late samples, and quantiles of their ages.

import { FigureList } from '../../components/figures';
import { count, UNKNOWN } from '../../format';
import { counted_ms, type Figures } from './ask';
import { ageText, secondsText, shareText } from './text';

export function Summary({ total, error }: { total: Required<Figures>; error: number }) {
  const age = (ms: number) => (total.lateSamples > 0 ? ageText(ms) : UNKNOWN);
  return (
    <>
      <FigureList kind="figure-list" all={[
        ['Late', <>{shareText(total.lateSamples, total.samples)}<small>{count(total.lateSamples)} of {count(total.samples)} samples</small></>],
        ['Age p50', <>{age(total.lateAgeMs.p50)}<small>half are no older</small></>],
        ['Age p90', age(total.lateAgeMs.p90)],
        ['Age p99', age(total.lateAgeMs.p99)],
        ['Oldest', <>{age(total.lateAgeMs.max)}<small>exact</small></>],
      ]} />
      {counted_ms.value !== null && <p class="hint">Counted since the start, {secondsText(counted_ms.value)} ago.</p>}
      <p class="hint">Ages are of late samples only, behind the newest of their series. Quantiles are never too small, and at most {100 * error}&#x202f;% too large.</p>
    </>
  );
}
