// Stored samples as a file, by the server's export.

import { send, type Failure } from '../api';
import { download } from '../format';
import type { Span } from './span';

export type Format = 'csv' | 'arrow';

/** Saves the samples of the series that match, in this time; what went wrong, or null. */
export async function exportSamples(match: string[], span: Span, format: Format): Promise<Failure | null> {
  const parameters = { 'match[]': match, start: span.from_ms / 1000, end: span.to_ms / 1000, format };
  const answer = await send('api/v1/export', parameters, { method: 'POST' });
  if (!(answer instanceof Response)) return answer;
  try {
    download(`latewood-samples.${format}`, await answer.blob(), answer.headers.get('Content-Type') ?? '');
    return null;
  } catch {
    return { status: 0, kind: 'network', text: 'the export ended before it was complete' };
  }
}
