// The step of range queries: a duration in the address, or empty for one that fits the range.

import { durationText } from '../clock';
import { params, setParams } from '../route';

/** `used_ms` is the step of what is shown. */
export function StepInput({ used_ms }: { used_ms: number | null }) {
  return (
    <label class="inline">Step
      <input class="step" value={params.value.get('step') ?? ''} placeholder={used_ms === null ? 'auto' : durationText(used_ms)} title="Such as 30s; empty: fits the range"
        onChange={(event) => setParams({ step: event.currentTarget.value.trim() || null })} />
    </label>
  );
}
