// The button that leads to the time in which there are samples, and says why it cannot.

import { useState } from 'preact/hooks';
import type { Failure } from '../api';
import { showStored } from './span';

export function ShowStored() {
  const [failure, setFailure] = useState<Failure | null>(null);
  return (
    <>
      <button type="button" onClick={async () => setFailure(await showStored())}>Show all the time that has samples</button>
      {failure && <span class="error" role="alert">{failure.text}</span>}
    </>
  );
}
