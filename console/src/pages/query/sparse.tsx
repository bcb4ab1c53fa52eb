// Why steps can miss every sample, and what to ask instead.

import { durationText } from '../../clock';
import { run } from './run';
import { LOOKBACK_MS } from './state';

export function Sparse() {
  const now = run.value;
  if (!now?.isRange || now.step_ms <= LOOKBACK_MS) return null;
  const step = durationText(now.step_ms);
  return (
    <p>
      The steps of {step} are farther apart than the {durationText(LOOKBACK_MS)} that a sample counts for, so that samples can lie between them. Ask
      for <code>last_over_time(x[{step}])</code>, or choose a shorter step or range.
    </p>
  );
}
