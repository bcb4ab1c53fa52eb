// Deletes what a selector finds: the samples of a time, or whole series. It takes two steps. The
// first has the server count, which deletes nothing; the second is a button that has not been there
// before and says what was counted. Any change of the question takes that button back.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { api, send, session, type Failure } from '../../api';
import { useAsked } from '../../ask';
import { Broken, RANGE, wordOf } from '../../components/broken';
import { Choice } from '../../components/choice';
import { useDraft } from '../../components/draft';
import { Editor } from '../../components/editor';
import { Busy, ErrorBox } from '../../components/notice';
import { range, spanOf, type Span } from '../../components/span';
import { TimePicker } from '../../components/timepicker';
import { timeText } from '../../clock';
import { count } from '../../format';
import { href, params } from '../../route';
import { several } from './state';

const PATH = 'admin/tsdb/delete_series';
const WORDS: Record<string, string> = { samples: 'samples in this time', series: 'whole series' };

const CHECKS = [wordOf('delete', Object.keys(WORDS), 'samples in this time are deleted')];

interface Counts {
  series: number;
  seriesWithSamples: number;
  samples: number;
}

/** What is to be counted, and deleted then. */
interface Question {
  number: number;
  select: string;
  /** The times; null for whole series. */
  span: Span | null;
}

/** How a deletion went, or that there was none. */
type Outcome = { text: string } | { failure: Failure } | null;

const between = ({ from_ms, to_ms }: Span) => `from ${timeText(from_ms)} to ${timeText(to_ms)}`;

/** What would go; empty where nothing would. */
function nameOf({ series, seriesWithSamples, samples }: Counts, span: Span | null): string {
  if (span === null) return series === 0 ? '' : `${count(series)} whole series with ${several(samples, 'sample')}`;
  return samples === 0 ? '' : `${several(samples, 'sample')} of ${count(seriesWithSamples)} series`;
}

function summary({ series }: Counts, span: Span | null, name: string): string {
  const matching = `${count(series)} series match.`;
  if (name === '') return span && series > 0 ? `${matching} None of them has samples ${between(span)}.` : 'No series match.';
  if (span === null) return `${matching} All of each would be deleted: samples, labels and compaction rules.`;
  return `${matching} ${name} would be deleted: those ${between(span)}.`;
}

function Found({ question: { select, span }, sending, end }: { question: Question; sending: { current: boolean }; end: (outcome: Outcome) => void }) {
  const times = span ? { start: span.from_ms / 1000, end: span.to_ms / 1000 } : {};
  const asked = { 'match[]': select, ...times };
  const { data, failure, isRunning, again } = useAsked<Counts>((signal) => api(PATH, { ...asked, dry_run: 'true' }, { method: 'POST', signal }), '');
  const [isSent, setSent] = useState(false);
  if (failure) {
    return (
      <ErrorBox failure={failure} retry={again}>
        {failure.status === 403 && <p>This needs permission for the command {span ? 'TS.DEL' : 'DEL'} on every series that matches.</p>}
      </ErrorBox>
    );
  }
  const name = data ? nameOf(data, span) : '';
  const remove = async (event: MouseEvent) => {
    // The second half of a double click is no answer.
    if (isSent || event.detail > 1) return;
    setSent(true);
    sending.current = true;
    const asker = session.peek();
    const answer = await send(`api/v1/${PATH}`, asked, { method: 'POST' });
    sending.current = false;
    // What one user did is not told to the next.
    if (asker !== session.peek()) return end(null);
    return end(answer instanceof Response ? { text: `Deleted: ${name}${span ? `, ${between(span)}` : ''}, as they were counted.` } : { failure: answer });
  };
  // Nor is a key that is held down.
  const key = (event: KeyboardEvent) => {
    if (event.repeat) event.preventDefault();
    if (event.key === 'Escape' && !isSent) end(null);
  };
  return (
    <div class="counted" onKeyDown={key}>
      <Busy on={isRunning || isSent} />
      <p role="status">{isSent ? 'Deleting...' : data ? summary(data, span, name) : 'Counting...'}</p>
      {data && name !== '' && (
        <>
          <p class="hint">
            See <a href={href('series', { select })}>the series</a>
            {span && <> or <a href={href('query', { q: select, from: String(span.from_ms), to: String(span.to_ms) })}>their samples in this time</a></>}.
          </p>
          <div class="bar">
            <button type="button" class="danger" aria-disabled={isSent} onClick={(event) => void remove(event)}>Delete {name}</button>
            {!isSent && <button type="button" onClick={() => end(null)}>Cancel</button>}
          </div>
        </>
      )}
    </div>
  );
}

function Ended({ outcome }: { outcome: Outcome }) {
  if (outcome && 'failure' in outcome) {
    const { failure } = outcome;
    return <ErrorBox failure={failure}><p>{failure.status === 0 && 'It may have been done all the same. '}Count again to see what is left.</p></ErrorBox>;
  }
  return <p class="hint" role="status">{outcome?.text ?? 'Counting deletes nothing.'}</p>;
}

export function Delete() {
  const { draft, show, editing } = useDraft('select', params.value.get('select') ?? '');
  const isWhole = params.value.get('delete') === 'series';
  const [question, setQuestion] = useState<Question | null>(null);
  const [outcome, setOutcome] = useState<Outcome>(null);
  const number = useRef(0);
  const button = useRef<HTMLButtonElement>(null);
  const sending = useRef(false);
  // Before anybody can answer what is no longer asked. What is being deleted is shown until it is.
  useLayoutEffect(() => () => {
    if (!sending.current) setQuestion(null);
  }, [draft, isWhole, JSON.stringify(range.value)]);
  // What one user saw is not for the next.
  useLayoutEffect(() => () => setOutcome(null), [session.value]);
  const ask = () => {
    if (sending.current) return;
    show();
    setOutcome(null);
    setQuestion({ number: ++number.current, select: draft, span: isWhole ? null : spanOf(range.value) });
  };
  const end = (ended: Outcome) => {
    // The button that has the focus goes.
    if (document.activeElement?.closest('.counted')) button.current?.focus();
    setOutcome(ended);
    setQuestion(null);
  };
  return (
    <>
      <div class="query">
        <div class="line">
          <Editor label="Selector" {...editing} hint={'A selector, such as {job="api"}'} onRun={ask} />
          <button type="button" class="primary" ref={button} onClick={ask}>Count</button>
        </div>
      </div>
      <div class="bar">
        <Choice label="Delete" param="delete" values={Object.keys(WORDS)} initial="" text={(word) => WORDS[word] ?? word} />
        {!isWhole && <TimePicker />}
      </div>
      <Broken checks={isWhole ? CHECKS : [...CHECKS, ...RANGE]} />
      <section class="card" aria-label="What would be deleted">
        {question ? <Found key={question.number} question={question} sending={sending} end={end} /> : <Ended outcome={outcome} />}
      </section>
    </>
  );
}
