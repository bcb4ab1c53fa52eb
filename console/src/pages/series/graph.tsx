// The samples as a chart: each one with late ones and those that are no number marked, or a summary
// where there are too many.

import { useMemo, useState } from 'preact/hooks';
import { Chart, type Line, type Look, type Mark } from '../../components/chart';
import { setRange, type Span } from '../../components/span';
import { Swatch } from '../../components/swatch';
import { durationText, secondText, timeText } from '../../clock';
import { count, short } from '../../format';
import { colour, isDark } from '../../theme';
import { valueOf } from '../query/lines';
import { noteRange, zoomBack } from '../query/state';
import { PAGE_SAMPLES, type Sample, type Summary } from './samples';
import { several } from './state';

const HEIGHT_PX = 300;
const LOOK: Look = { stacked: false, zero: false, log: false, points: false };
const [VALUE, LATE, MEAN, NO_NUMBER] = [0, 1, 2, 3];

/** A mark as it is in the chart. */
function MarkSymbol({ mark, index }: { mark: Mark; index: number }) {
  const paths = { diamond: 'M5 .5 9.5 5 5 9.5 .5 5Z', cross: 'M1 1l8 8M9 1 1 9' };
  const stroke = colour(index, isDark.value);
  return (
    <svg class="symbol" viewBox="0 0 10 10" aria-hidden="true">
      <path d={paths[mark]} stroke={stroke} stroke-width="2" fill={mark === 'diamond' ? `${stroke}66` : 'none'} />
    </svg>
  );
}

export const LateSymbol = () => <MarkSymbol mark="diamond" index={LATE} />;

interface Plotted {
  times: number[];
  lines: Line[];
  area?: [number, number];
}

const line = (label: string, index: number, values: (number | null)[], marks?: Mark): Line => ({ label, index, values, marks, isHidden: false });

/** NaN and -Inf stand at the lower edge, +Inf at the upper one. */
function ofSamples(samples: Sample[]): Plotted {
  const values = samples.map(([, text]) => valueOf(text));
  let [least, greatest] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  if (least > greatest) [least, greatest] = [0, 0];
  const placed = values.map((value) => (Number.isFinite(value) ? value : value === Infinity ? greatest : least));
  return {
    times: samples.map(([time]) => time),
    lines: [
      line('value', VALUE, values),
      line('not finite', NO_NUMBER, placed.map((value, at) => (Number.isFinite(values[at]) ? null : value)), 'cross'),
      line('late', LATE, placed.map((value, at) => (samples[at]![2] ? value : null)), 'diamond'),
    ],
  };
}

function ofSummary({ times, least, mean, greatest }: Summary): Plotted {
  return { times, lines: [line('greatest', VALUE, greatest), line('least', VALUE, least), line('mean', MEAN, mean)], area: [0, 1] };
}

function SamplesLegend({ samples, at }: { samples: Sample[]; at: number | null }) {
  const shown = at === null ? undefined : samples[at];
  if (shown) return <p class="keys"><span>{timeText(shown[0])}</span><strong>{shown[1]}</strong>{shown[2] && <span><LateSymbol /> late, waiting to be merged</span>}</p>;
  const late = samples.filter(([, , isLate]) => isLate).length;
  const others = samples.filter(([, text]) => !Number.isFinite(valueOf(text))).length;
  return (
    <p class="keys">
      <span><Swatch index={VALUE} /> {several(samples.length, 'sample')}</span>
      <span><LateSymbol /> {count(late)} late, waiting to be merged</span>
      <span><MarkSymbol mark="cross" index={NO_NUMBER} /> {count(others)} NaN, +Inf or -Inf</span>
    </p>
  );
}

function SummaryLegend({ summary, at }: { summary: Summary; at: number | null }) {
  const value = (column: (number | null)[]) => (at === null || column[at] == null ? '' : short(column[at]));
  const start_ms = at === null ? null : summary.times[at]! - summary.step_ms / 2;
  return (
    <>
      <p class="keys">
        <span>{start_ms === null ? `Each ${durationText(summary.step_ms)}` : `${durationText(summary.step_ms)} from ${timeText(start_ms)}`}:</span>
        <span><Swatch index={VALUE} /> least <strong>{value(summary.least)}</strong></span>
        <span><Swatch index={MEAN} /> mean <strong>{value(summary.mean)}</strong></span>
        <span><Swatch index={VALUE} /> greatest <strong>{value(summary.greatest)}</strong></span>
      </p>
      <p class="hint">
        More than {count(PAGE_SAMPLES)} samples in this time: each {durationText(summary.step_ms)} is drawn by its least, mean and greatest value
        {summary.nan > 0 && `, without ${count(summary.nan)} NaN`}. Zoom in for single samples and marks of late ones.
      </p>
    </>
  );
}

/** What is drawn. */
export interface Drawn {
  span: Span;
  samples: Sample[];
  /** Instead of the samples, where there are more. */
  summary: Summary | null;
}

export function Graph({ span, samples, summary }: Drawn) {
  const [at, setAt] = useState<number | null>(null);
  const plotted = useMemo(() => (summary ? ofSummary(summary) : ofSamples(samples)), [samples, summary]);
  const zoom = (next: Span) => {
    noteRange();
    setRange(next);
  };
  const label = `${summary ? 'Summary of samples' : several(samples.length, 'sample')} from ${secondText(span.from_ms)} to ${secondText(span.to_ms)}`;
  return (
    <>
      <Chart label={label} {...plotted} span={span} look={LOOK} height={HEIGHT_PX} focus={-1} onSpan={zoom} onBack={zoomBack} onCursor={setAt} />
      {summary ? <SummaryLegend summary={summary} at={at} /> : <SamplesLegend samples={samples} at={at} />}
    </>
  );
}
