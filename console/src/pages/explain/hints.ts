// What to do about a query that failed.

import type { Failure } from '../../api';

/** What to do; null where the error says all that is known. */
export function hint({ status, kind, text }: Failure): string | null {
  if (kind === 'timeout') return 'Choose a shorter time or a longer step, or select fewer series. The limit is --promql-timeout of the server.';
  if (kind === 'canceled' && status !== 0) return 'Somebody cancelled it, on the Queries page or by the API.';
  if (text.includes('many-to-many matching not allowed')) {
    return 'Several series of that side have the same matching labels. Compare more labels (name them in on(), or take them out of ignoring()), or aggregate that side, such as sum by (...) (...).';
  }
  if (text.includes('matching must be explicit')) {
    return 'One side has several series for one of the other. Write group_left behind on() or ignoring() if it is the left side, group_right if it is the right one.';
  }
  if (kind === 'unavailable') return 'The server has too much to do at the moment. Explain again later.';
  return null;
}
