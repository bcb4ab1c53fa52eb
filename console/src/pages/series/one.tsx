// One series.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { nextAsk, useAsked, useRefresh, type Answered } from '../../ask';
import { Broken, RANGE, refreshOf } from '../../components/broken';
import { RefreshChoice } from '../../components/choice';
import { exportSamples, type Format } from '../../components/export';
import { Exporting } from '../../components/exporting';
import { Menu } from '../../components/menu';
import { Busy, Empty, ErrorBox } from '../../components/notice';
import { range, setRange, spanOf, type Span } from '../../components/span';
import { TimePicker } from '../../components/timepicker';
import { parseDuration } from '../../clock';
import { count } from '../../format';
import { href, params } from '../../route';
import { rangeParams } from '../query/state';
import { About, Rules } from './about';
import { Commands } from './commands';
import { Graph, type Drawn } from './graph';
import { PAGE_SAMPLES, useSamples, useSummary } from './samples';
import { exactSelector } from './selector';
import type { Series } from './state';
import { atProblem, SamplesTable } from './table';

const CHECKS = [...RANGE, refreshOf('it does not refresh'), () => atProblem()];
const HOUR_MS = 3_600_000;

/** All samples, if there are some. */
function whole({ first_ms, last_ms }: Series): Span | null {
  return first_ms === null || last_ms === null ? null : { from_ms: first_ms, to_ms: Math.max(last_ms, first_ms + 1) };
}

/** Without a range in the address: the last hour, or all samples where it has none. */
function useFirstRange(series: Series): void {
  useEffect(() => {
    const all = whole(series);
    const isGiven = ['range', 'from', 'to'].some((name) => params.peek().has(name));
    const now = Date.now();
    if (!isGiven && all && (all.to_ms < now - HOUR_MS || all.from_ms > now)) setRange(all, true);
  }, []);
}

/** The selector of this series; null until it is known, and where there is none. */
function useSelector({ key, metric }: Series): Answered<string | null> {
  return useAsked(async (signal) => {
    const found = await exactSelector(key, metric, signal);
    return found === null || typeof found === 'string' ? { ok: true, data: found, warnings: [], infos: [], took_ms: 0 } : { ok: false, ...found };
  }, key);
}

function Downloads({ selector, span }: { selector: string | null; span: Span }) {
  const item = (format: Format, label: string, close: () => void) => (
    <li><button type="button" onClick={() => { close(); void exportSamples([selector!], span, format); }}>{label}<small>samples in this time</small></button></li>
  );
  if (selector === null) return <button type="button" disabled>Download</button>;
  return (
    <>
      <Menu label="Download" side="right">{(close) => <ul class="list">{item('csv', 'CSV', close)}{item('arrow', 'Arrow', close)}</ul>}</Menu>
      <Exporting />
    </>
  );
}

function Bar({ series, selector, span, again }: { series: Series; selector: string | null; span: Span; again: () => void }) {
  const all = whole(series);
  return (
    <div class="bar">
      <TimePicker />
      <button type="button" disabled={!all} onClick={() => setRange(all!)}>All samples</button>
      <RefreshChoice />
      <button type="button" onClick={again}>Refresh</button>
      <span class="gap" />
      {selector !== null && <a class="button" href={href('query', { q: selector, ...rangeParams() })}>Query</a>}
      <Downloads selector={selector} span={span} />
      {selector !== null && <a class="button" href={href('series', { delete: 'samples', select: selector, ...rangeParams() })}>Delete samples...</a>}
    </div>
  );
}

function NoSamples({ series }: { series: Series }) {
  const all = whole(series);
  if (!all) return <Empty title="No samples"><p>The series is empty. Write one: <code>TS.ADD key * 1</code></p></Empty>;
  return (
    <Empty title="No samples in this time">
      <button type="button" onClick={() => setRange(all)}>Show all the time that has samples</button>
    </Empty>
  );
}

export function One({ answered }: { answered: Answered<Series> & { data: Series } }) {
  const { data: series, failure, again } = answered;
  useFirstRange(series);
  const [turn, setTurn] = useState(0);
  const next = () => setTurn((turn) => turn + 1);
  const asked = useMemo(() => spanOf(range.value), [range.value, turn]);
  const samples = useSamples(series.key, asked.from_ms / 1000, asked);
  const selected = useSelector(series);
  const selector = selected.data;
  // A time up to now has moved, and is asked for already.
  useEffect(() => {
    if (turn === 0) return;
    again();
    if ('from_ms' in range.peek()) samples.again();
    if (selected.failure) selected.again();
  }, [turn]);
  // What is drawn belongs to the last answer.
  const span = useMemo(() => asked, [samples.data]);
  const isLong = samples.data !== null && samples.data.next_start !== null;
  const summarized = useSummary(isLong ? selector : null, span, samples.data);
  const isSummarized = isLong && summarized.span === span;
  const isWaiting = isLong && !isSummarized && !summarized.failure && (selector !== null || selected.isRunning);
  const isRunning = samples.isRunning || isWaiting;
  useRefresh(nextAsk(parseDuration(params.value.get('refresh') ?? ''), samples.failure), isRunning, next);
  // It stays while the next is under way.
  const drawn = useRef<Drawn | null>(null);
  if (samples.data && !isWaiting) drawn.current = { span, samples: samples.data.samples, summary: isSummarized ? summarized.summary : null };
  const isEmpty = drawn.current?.samples.length === 0;
  return (
    <>
      <Bar series={series} selector={selector} span={asked} again={next} />
      <Broken checks={CHECKS} />
      {[failure, samples.failure, isLong ? summarized.failure : null].map((one, at) => one && <ErrorBox key={at} failure={one} retry={next} />)}
      {selected.failure && <ErrorBox failure={selected.failure} retry={next}><p>Whether a selector matches this series alone is not known; Query and Download need one.</p></ErrorBox>}
      <section class="card graph-of" aria-label="Graph">
        <Busy on={isRunning} />
        {isEmpty && <NoSamples series={series} />}
        {drawn.current && !isEmpty && <Graph {...drawn.current} />}
        {isLong && !isWaiting && !isSummarized && !selected.failure && (
          <p class="hint">Only the first {count(PAGE_SAMPLES)} samples are drawn: {selector === null ? 'no selector tells this series from others' : 'the server has not summarized them'}. Zoom in for others.</p>
        )}
      </section>
      <About series={series} />
      <Rules series={series} />
      <Commands name={series.key} span={span} />
      {samples.data && samples.data.samples.length > 0 && <SamplesTable name={series.key} span={span} first={samples.data} />}
    </>
  );
}

