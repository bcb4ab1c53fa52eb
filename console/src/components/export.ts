// Stored samples as a file, by the server's export; one at a time.

import { send, type Failure } from '../api';
import { download } from '../format';
import { runner } from '../runner';
import type { Span } from './span';

export type Format = 'csv' | 'arrow';

/** Its answer is what went wrong, or null. */
export const exporting = runner<Failure | null>(null);

/** Saves the samples of the series that match, in this time. */
export async function exportSamples(match: string[], span: Span, format: Format): Promise<void> {
  if (match.length === 0) return exporting.set({ status: 0, kind: 'download', text: 'the queries select no series' });
  const parameters = { 'match[]': match, start: span.from_ms / 1000, end: span.to_ms / 1000, format };
  await exporting.run(async (signal) => {
    const answer = await send('api/v1/export', parameters, { method: 'POST', signal });
    if (!(answer instanceof Response)) return answer;
    try {
      download(`latewood-samples.${format}`, await answer.blob(), answer.headers.get('Content-Type') ?? '');
      return null;
    } catch {
      return { status: 0, kind: 'network', text: 'the export ended before it was complete' };
    }
  });
}
