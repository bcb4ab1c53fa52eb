// What is said of an export beside its menu: that it runs, and how it is ended; or what went wrong.

import { useEffect } from 'preact/hooks';
import { exporting } from './export';

export function Exporting() {
  // It ends with the page.
  useEffect(() => () => exporting.set(null), []);
  const failure = exporting.answer.value;
  if (exporting.isRunning.value) {
    return <span class="inline" role="status">Exporting <button type="button" onClick={exporting.leave}>Cancel export</button></span>;
  }
  return failure && <span class="error" role="alert">{failure.text}</span>;
}
