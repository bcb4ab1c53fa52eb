// Pairs of label and value. The server gives each as one text, `label=value`, and either may
// contain `=`: then the names of labels that there are tell where the value begins.

import { useEffect, useState } from 'preact/hooks';
import { api, session } from '../../api';
import type { Entry, Tsdb } from './list';
import { narrowed } from './selector';

type Pair = [label: string, value: string];

export interface PairEntry extends Entry {
  /** Null while or where it is not known. */
  pair: Pair | null;
}

/** All that the text may mean. */
function splits(text: string): Pair[] {
  return [...text.matchAll(/=/g)].map(({ index }): Pair => [text.slice(0, index), text.slice(index + 1)]).filter(([label]) => label !== '');
}

function certain(rows: Entry[]): PairEntry[] {
  return rows.map((row) => {
    const all = splits(row.name);
    return { ...row, pair: all.length === 1 ? all[0]! : null };
  });
}

/** Rows of the same text, told apart by how many series there are of each pair. */
async function byCount(rows: PairEntry[], pairs: Pair[], filter: string, signal: AbortSignal): Promise<void> {
  const open = new Set(rows);
  for (const pair of pairs) {
    const outcome = await api<Tsdb>('status/tsdb', { 'match[]': narrowed(filter, pair[0], '=', pair[1]), limit: 1 }, { signal });
    const row = [...open].find(({ value }) => outcome.ok && value === outcome.data.totalSeries);
    if (!row) continue;
    row.pair = pair;
    open.delete(row);
  }
}

async function settled(rows: Entry[], filter: string, signal: AbortSignal): Promise<PairEntry[]> {
  const found = certain(rows);
  const outcome = await api<string[]>('labels', { 'match[]': filter }, { signal });
  const names = new Set(outcome.ok ? outcome.data : []);
  const open = new Map<string, PairEntry[]>();
  for (const row of found) if (!row.pair) open.set(row.name, [...open.get(row.name) ?? [], row]);
  for (const [text, same] of open) {
    const pairs = splits(text).filter(([label]) => names.has(label));
    if (pairs.length === 1) same[0]!.pair = pairs[0]!;
    else if (pairs.length > 1) await byCount(same, pairs, filter, signal);
  }
  return found;
}

/** The rows with their pairs; those that are not certain get them when the server has told more. */
export function usePairs(rows: Entry[], filter: string): PairEntry[] {
  const [known, setKnown] = useState<{ of: Entry[]; rows: PairEntry[] } | null>(null);
  const login = session.value;
  useEffect(() => {
    if (certain(rows).every(({ pair }) => pair)) return;
    const abort = new AbortController();
    void settled(rows, filter, abort.signal).then((found) => { if (!abort.signal.aborted) setKnown({ of: rows, rows: found }); });
    return () => abort.abort();
  }, [rows, filter, login]);
  return known?.of === rows ? known.rows : certain(rows);
}
