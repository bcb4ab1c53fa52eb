// The step of range queries: a duration in the address, or empty for one that fits the range.

import { durationText } from '../clock';
import { params, setParams } from '../route';
import { useBox } from './draft';

/** `used_ms` is the step of what is shown. */
export function StepInput({ used_ms }: { used_ms: number | null }) {
  const text = params.value.get('step') ?? '';
  return (
    <label class="inline">Step
      <input ref={useBox(text)} class="step" defaultValue={text} placeholder={used_ms === null ? 'auto' : durationText(used_ms)} title="Such as 30s; empty: fits the range"
        onChange={(event) => setParams({ step: event.currentTarget.value.trim() || null })} />
    </label>
  );
}
