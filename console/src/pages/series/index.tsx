// The Series page: finds series, and shows one of them. `state.ts` says what is in the address.

import { useEffect, useState } from 'preact/hooks';
import { useAnswer, type Answered } from '../../ask';
import { loginNeeded, user } from '../../api';
import { Busy, Empty, ErrorBox } from '../../components/notice';
import { count, type Labels } from '../../format';
import { href, params, setParams } from '../../route';
import { Delete } from './delete';
import { Find } from './find';
import { SeriesList } from './list';
import { One } from './one';
import { redisKey } from './rediskey';
import { meaningOf } from './selector';
import type { Series } from './state';
import './series.css';

/** Series of a selector that was to match one; the one with exactly its labels is gone to. */
function Choice({ match, answered }: { match: string; answered: Answered<Series> }) {
  const [choices, setChoices] = useState<Labels[] | null>(null);
  const [isKnown, setKnown] = useState(false);
  useEffect(() => {
    const abort = new AbortController();
    void meaningOf(match, abort.signal).then((meaning) => {
      if (abort.signal.aborted) return;
      if (meaning && 'match' in meaning) setParams({ match: meaning.match }, true);
      else if (meaning) setChoices(meaning.choices);
      setKnown(true);
    });
    return () => abort.abort();
  }, [match]);
  if (!isKnown) return <Busy on />;
  if (!choices) return <ErrorBox failure={answered.failure!} retry={answered.again} />;
  return (
    <section class="card" aria-label="Found">
      <p class="hint found" role="status">{count(choices.length)} series match; choose one.</p>
      <SeriesList found={choices} />
    </section>
  );
}

function Missing({ name, answered }: { name: string; answered: Answered<Series> }) {
  const { failure, again } = answered;
  const isKey = params.value.has('key');
  if (failure?.status === 404) {
    return (
      <Empty title={isKey ? 'No such key' : 'No such series'}>
        <p><code>{name}</code></p>
        <p>It may have been deleted, or expired, or is not a time series. Names are case-sensitive.</p>
        <div class="row">
          <a class="button" href={href('series', isKey ? { by: 'key', text: name.slice(0, Math.ceil(name.length / 2)) } : {})}>{isKey ? 'Find similar keys' : 'Find series'}</a>
          <button type="button" onClick={again}>Try again</button>
        </div>
      </Empty>
    );
  }
  return (
    <ErrorBox failure={failure!} retry={again}>
      {failure?.status === 403 && (
        <>
          <p>{user.value ?? 'This user'} may not read this series. Log in as another user, or have this granted:</p>
          <p><code>ACL SETUSER {user.value ?? 'default'} +ts.info +ts.range +ts.mrange %R~{isKey ? redisKey(name, true) : 'KEY'}</code></p>
          <button type="button" onClick={() => { loginNeeded.value = ''; }}>Log in</button>{' '}
        </>
      )}
    </ErrorBox>
  );
}

function Named({ name, isKey }: { name: string; isKey: boolean }) {
  const answered = useAnswer<Series>('status/series', isKey ? { key: name } : { 'match[]': name });
  const { data, failure } = answered;
  const key = data?.key;
  // One series, one address: that of its key.
  useEffect(() => { if (!isKey && key !== undefined) setParams({ match: null, key }, true); }, [isKey, key]);
  if (data && isKey) return <One answered={{ ...answered, data }} />;
  if (!failure) return <><div class="bar coming" /><section class="card graph-of"><Busy on /></section></>;
  return !isKey && failure.status === 400 ? <Choice match={name} answered={answered} /> : <Missing name={name} answered={answered} />;
}

export function SeriesPage() {
  const key = params.value.get('key');
  const name = key ?? params.value.get('match');
  const isDeletion = name === null && params.value.has('delete');
  const isFinding = name === null && !isDeletion;
  return (
    <div class="page series-page">
      <h1 class={isFinding ? 'hidden' : isDeletion ? '' : 'name'}>{name ?? (isDeletion ? 'Delete by a selector' : 'Series')}</h1>
      {!isFinding && <p class="up"><a href={href('series')}>All series</a></p>}
      {name !== null ? <Named key={`${key !== null} ${name}`} name={name} isKey={key !== null} /> : isDeletion ? <Delete /> : <Find />}
    </div>
  );
}
