// The samples as a table, a page of at most 10,000 at a time. `at` in the address is where a page
// begins.

import { broken } from '../../components/broken';
import { Table, type Column } from '../../components/table';
import { Busy, ErrorBox } from '../../components/notice';
import { isTime, range, spanOf, type Span } from '../../components/span';
import { timeText } from '../../clock';
import { params, setParams } from '../../route';
import { valueOf } from '../query/lines';
import { LateSymbol } from './graph';
import { useSamples, type Page, type Sample } from './samples';
import { several } from './state';

const COLUMNS: Column<Sample>[] = [
  { name: 'time', title: 'Time', by: ([time]) => time, cell: ([time]) => timeText(time), width: '206px' },
  { name: 'value', title: 'Value', by: ([, text]) => valueOf(text), cell: ([, text]) => text, isNumber: true },
  { name: 'late', title: 'Late', by: ([, , isLate]) => Number(!isLate), cell: ([, , isLate]) => (isLate ? <><LateSymbol /> waiting</> : ''), width: '104px' },
  { name: 'timestamp', title: 'Timestamp', by: ([time]) => time, cell: ([time]) => time, isNumber: true, width: '140px' },
];

function Shown({ page: { samples, next_start }, at }: { page: Page; at: string | null }) {
  const last = samples.at(-1);
  return (
    <>
      <div class="bar">
        <span class="hint" role="status">
          {several(samples.length, 'sample')}{last && `, from ${timeText(samples[0]![0])} to ${timeText(last[0])}`}{next_start === null ? '' : ', and more'}
        </span>
        <span class="gap" />
        {at !== null && <button type="button" onClick={() => setParams({ at: null })}>First page</button>}
        {next_start !== null && <button type="button" onClick={() => setParams({ at: next_start })}>Next page</button>}
      </div>
      <Table key={at} label="Samples" columns={COLUMNS} rows={samples} id={([time]) => time} />
    </>
  );
}

function Further({ name, at, span }: { name: string; at: string; span: Span }) {
  const { data, failure, isRunning, again } = useSamples(name, at, span);
  return (
    <>
      <Busy on={isRunning} />
      {failure && <ErrorBox failure={failure} retry={again} />}
      {data && <Shown page={data} at={at} />}
    </>
  );
}

/** Whether a later page than the first begins there. */
const isLater = (at: string, span: Span) => isTime(at) && Number(at) * 1000 > span.from_ms && Number(at) * 1000 <= span.to_ms;

/** What is wrong with `at` in the address; null if nothing is. */
export function atProblem(): string | null {
  const span = spanOf(range.value);
  const isFit = (at: string) => isLater(at, span) || (isTime(at) && Number(at) * 1000 === span.from_ms);
  return broken('at', isFit, 'a time in seconds in the range', 'the first page is shown');
}

/** The table begins with the page that is known, unless the address names a later one. */
export function SamplesTable({ name, span, first }: { name: string; span: Span; first: Page }) {
  const at = params.value.get('at');
  return (
    <section class="card samples" aria-labelledby="samples">
      <h2 id="samples">Samples</h2>
      <p class="hint">
        <LateSymbol /> waiting: the timestamp has a late sample or a deletion in memory that waits to be merged. That happens once the series
        gets no more of them, and when they are written into blocks; then they are not marked any more, nor are samples that came late before
        their series had sealed a frame behind them.
      </p>
      {at !== null && isLater(at, span) ? <Further name={name} at={at} span={span} /> : <Shown page={first} at={null} />}
    </section>
  );
}
