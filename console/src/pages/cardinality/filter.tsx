// The selector that the page counts, with what it would match while it is typed.

import { useEffect, useState } from 'preact/hooks';
import { api, session } from '../../api';
import { useDraft } from '../../components/draft';
import { Editor } from '../../components/editor';
import { count } from '../../format';
import { href } from '../../route';
import type { Tsdb } from './list';

const WAIT_MS = 400;

interface Said {
  of: string;
  text: string;
  isError: boolean;
}

/** What `draft` would match; null until the server has said so. */
function useMatches(draft: string, shown: string): Said | null {
  const [said, setSaid] = useState<Said | null>(null);
  const login = session.value;
  useEffect(() => {
    if (draft === '' || draft === shown) return;
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      const outcome = await api<Tsdb>('status/tsdb', { 'match[]': draft, limit: 1 }, { signal: abort.signal });
      if (abort.signal.aborted) return;
      const text = outcome.ok ? `Would match ${count(outcome.data.totalSeries)} series; Enter shows them.` : outcome.text;
      setSaid({ of: draft, text, isError: !outcome.ok });
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [draft, shown, login]);
  return said?.of === draft && draft !== shown ? said : null;
}

export function Filter({ filter, total }: { filter: string; total: number | null }) {
  const { draft: text, show, clear, editing } = useDraft('match', filter);
  const said = useMatches(text, filter);
  const shown = filter === '' ? 'All series that you may read are counted.' : total === null ? '' : `Matches ${count(total)} series.`;
  return (
    <div class="filter">
      <div class="query">
        <div class="line">
          <Editor label="Filter" {...editing} onRun={show} />
          {(filter !== '' || text !== '') && <button type="button" class="quiet" onClick={clear}>Clear</button>}
          <button type="button" class={text === filter ? '' : 'primary'} onClick={show}>Show</button>
          <a class="button" href={href('series', filter === '' ? {} : { select: filter })} title="The series that are counted">List</a>
        </div>
      </div>
      <p class={said?.isError ? 'error' : 'hint'} role="status">{said?.text ?? (text === filter ? shown : text === '' ? 'Enter shows all series.' : 'Counting...')}</p>
    </div>
  );
}
