// Finds series by their Redis keys, page by page.

import { useEffect, useRef, useState } from 'preact/hooks';
import { api, session, type Failure } from '../../api';
import { useBox } from '../../components/draft';
import { Busy, Empty, ErrorBox } from '../../components/notice';
import { Table, type Column } from '../../components/table';
import { params, setParams } from '../../route';
import { keyHref, several } from './state';

const PAGE_KEYS = 1000;

interface Page {
  keys: string[];
  cursor: string | null;
}

interface Found extends Page {
  failure: Failure | null;
  isRunning: boolean;
}

const NOTHING: Found = { keys: [], cursor: null, failure: null, isRunning: true };

/** Keys that are found so far, and what asks for more of them. */
function useKeys(text: string, isPattern: boolean): [Found, () => void] {
  const [found, setFound] = useState(NOTHING);
  const more = useRef(() => {});
  const login = session.value;
  useEffect(() => {
    const abort = new AbortController();
    let [keys, cursor]: [string[], string | null] = [[], null];
    let isAsking = false;
    more.current = async () => {
      if (isAsking) return;
      isAsking = true;
      setFound({ keys, cursor, failure: null, isRunning: true });
      const asked = { [isPattern ? 'pattern' : 'prefix']: text, cursor: cursor ?? undefined, limit: PAGE_KEYS };
      const outcome = await api<Page>('status/keys', asked, { signal: abort.signal });
      isAsking = false;
      if (abort.signal.aborted) return;
      if (outcome.ok) {
        keys = [...keys, ...outcome.data.keys];
        ({ cursor } = outcome.data);
      }
      setFound({ keys, cursor, failure: outcome.ok ? null : outcome, isRunning: false });
    };
    more.current();
    return () => abort.abort();
  }, [text, isPattern, login]);
  return [found, () => more.current()];
}

const COLUMNS: Column<string>[] = [
  { name: 'key', title: 'Key', by: (key) => key, cell: (key) => <a href={keyHref(key)} title={key}>{key || '""'}</a> },
];

function Search({ text, isPattern }: { text: string; isPattern: boolean }) {
  const box = useBox(text);
  const how = useRef<HTMLSelectElement>(null);
  const find = (event: Event) => {
    event.preventDefault();
    setParams({ text: box.current!.value || null, how: how.current!.value === 'pattern' ? 'pattern' : null });
  };
  return (
    <form class="bar" onSubmit={find}>
      <label class="inline">Keys that
        <select ref={how} value={isPattern ? 'pattern' : 'prefix'} onChange={find}>
          <option value="prefix">begin with</option>
          <option value="pattern">match the pattern</option>
        </select>
      </label>
      <input ref={box} class="key" aria-label="Text" defaultValue={text} placeholder={isPattern ? '*:temp' : 'room:'} autocomplete="off" spellcheck={false} />
      <button type="submit" class="primary">Find</button>
    </form>
  );
}

function State({ found, more }: { found: Found; more: () => void }) {
  const { keys, cursor, isRunning } = found;
  const said = isRunning ? 'Searching...' : `${several(keys.length, 'key')}${cursor === null ? '' : ' so far'}`;
  return (
    <div class="bar found">
      <span class="hint" role="status">{said}</span>
      {cursor !== null && <button type="button" onClick={more} aria-disabled={isRunning}>More</button>}
    </div>
  );
}

export function ByKey() {
  const text = params.value.get('text') ?? '';
  const isPattern = params.value.get('how') === 'pattern';
  const [found, more] = useKeys(text, isPattern);
  const isEmpty = found.keys.length === 0 && found.cursor === null && !found.isRunning && !found.failure;
  return (
    <>
      <Search text={text} isPattern={isPattern} />
      <section class="card" aria-label="Found">
        <Busy on={found.isRunning} />
        {found.failure && <ErrorBox failure={found.failure} retry={more} />}
        <State found={found} more={more} />
        {found.keys.length > 0 && <Table label="Keys" columns={COLUMNS} rows={found.keys} id={(_, index) => index} />}
        {isEmpty && (
          <Empty title="No such keys">
            <p>Keys that you may not read are not listed. A pattern must match the whole key: <code>*temp*</code></p>
            {text !== '' && <button type="button" onClick={() => setParams({ text: null, how: null })}>List all keys</button>}
          </Empty>
        )}
      </section>
    </>
  );
}
