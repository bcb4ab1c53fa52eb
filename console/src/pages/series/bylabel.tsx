// Finds series by a selector.

import { isUnanswered, useAnswer } from '../../ask';
import { useDraft } from '../../components/draft';
import { Editor } from '../../components/editor';
import { Busy, Empty, ErrorBox, NoSeries } from '../../components/notice';
import { count, type Labels } from '../../format';
import { href, params, setParams } from '../../route';
import { SeriesList } from './list';

const ALL = '{__name__!=""}';
const LISTED_MAX = 10_000;

function Selector({ select }: { select: string }) {
  const { draft, show, clear, editing } = useDraft('select', select);
  return (
    <div class="query">
      <div class="line">
        <Editor label="Selector" {...editing} onRun={show} />
        {draft !== '' && <button type="button" class="quiet" onClick={clear}>Clear</button>}
        <button type="button" class="primary" onClick={show}>Find</button>
      </div>
    </div>
  );
}

function Nothing({ select }: { select: string }) {
  if (select !== '') {
    return (
      <Empty title="No series match">
        <p>Nothing is named so. Regular expressions must match the whole value: <code>{'{job=~"api.*"}'}</code></p>
        <button type="button" onClick={() => setParams({ select: null })}>List all series</button>
      </Empty>
    );
  }
  return <NoSeries then="find it here" />;
}

export function ByLabel() {
  const select = params.value.get('select') ?? '';
  const { data, failure, isRunning, again } = useAnswer<Labels[]>('series', { 'match[]': select || ALL, limit: LISTED_MAX });
  const isCut = data?.length === LISTED_MAX;
  const isShown = data !== null && (!failure || isUnanswered(failure));
  return (
    <>
      <Selector select={select} />
      <section class="card" aria-label="Found">
        <Busy on={isRunning} />
        {failure && (
          <ErrorBox failure={failure} retry={again}>
            {failure.status === 403 && <p>All series that match must be allowed. Narrow the selector, or <a href={href('series', { by: 'key' })}>find by key</a>: keys that you may not read are left out there.</p>}
          </ErrorBox>
        )}
        <div class="bar found">
          <span class="hint" role="status">
            {isShown && data.length > 0 && (isCut ? `The first ${count(LISTED_MAX)} series are listed; narrow the selector to find others.` : `${count(data.length)} series`)}
          </span>
          <span class="gap" />
          {isShown && data.length > 0 && <a class="button" href={href('series', { delete: 'samples', ...(select && { select }) })}>Delete samples...</a>}
        </div>
        {isShown && (data.length > 0 ? <SeriesList found={data} /> : <Nothing select={select} />)}
      </section>
    </>
  );
}
