// Small charts of the last minutes, from the differences of two looks.

import { useMemo, useState } from 'preact/hooks';
import { secondText } from '../../clock';
import { Chart, type Look } from '../../components/chart';
import { Swatch } from '../../components/swatch';
import { bytes, short } from '../../format';
import { isSameRun, past, PROTOCOLS, rate, sentBy, type Status } from './status';

interface Curve {
  name: string;
  value: (before: Status, now: Status) => number | null;
}

const HEIGHT_PX = 130;
const LEAST_MS = 120_000;
const LOOK: Look = { stacked: false, zero: true, log: false, points: false };

/** Three digits are enough for a rate. */
const perSecond = (value: number) => `${short(Number(value.toPrecision(3)))}/s`;

const bytesPerSecond = (value: number) => `${bytes(Math.round(value))}/s`;

function Small({ title, curves, text }: { title: string; curves: Curve[]; text: (value: number) => string }) {
  const [cursor, setCursor] = useState<number | null>(null);
  const seen = past.value;
  const times = useMemo(() => seen.slice(1).map((one) => one.server.time_ms), [seen]);
  const lines = useMemo(() => curves.map(({ name, value }, index) => ({
    label: name, index, isHidden: false, values: seen.slice(1).map((now, at) => value(seen[at]!, now)),
  })), [seen, curves]);
  const to_ms = seen.at(-1)?.server.time_ms ?? 0;
  const from_ms = Math.min(seen[0]?.server.time_ms ?? 0, to_ms - LEAST_MS);
  const at = cursor ?? times.length - 1;
  return (
    <section class="card small">
      <div class="row"><h2>{title}</h2><span class="gap" /><span class="hint">{cursor !== null && times[at] !== undefined ? secondText(times[at]) : 'now'}</span></div>
      <Chart label={`${title} from ${secondText(from_ms)} to ${secondText(to_ms)}`} times={times} lines={lines} span={{ from_ms, to_ms }}
        look={LOOK} height={HEIGHT_PX} focus={-1} onCursor={setCursor} />
      <ul class="keys">
        {lines.map((line, index) => (
          <li key={line.label}>
            <Swatch index={index} /><span>{line.label}</span><b>{line.values[at] == null ? '-' : text(line.values[at])}</b>
          </li>
        ))}
      </ul>
    </section>
  );
}

const counter = (name: string, read: (status: Status) => number): Curve => ({ name, value: (before, now) => rate(before, now, read) });

const BY_PROTOCOL = PROTOCOLS.map((name) => counter(name, (status) => sentBy(status, name)));
const BY_OUTCOME = [
  counter('in order', ({ samples }) => samples.in_order),
  counter('late', ({ samples }) => samples.late),
  counter('duplicate', ({ samples }) => samples.duplicate),
  counter('ignored', ({ samples }) => samples.ignored),
  counter('refused', ({ samples }) => samples.refused_total),
];
/** A gauge; without a value where another run begins, so that no line joins two. */
const gauge = (name: string, read: (status: Status) => number): Curve => ({ name, value: (before, now) => (isSameRun(before, now) ? read(now) : null) });

const MEMORY = [
  gauge('used', ({ memory }) => memory.used_bytes),
  gauge('resident', ({ memory }) => memory.resident_bytes),
  gauge('in no block yet', ({ memory }) => memory.unflushed_bytes),
];
const sum = (values: number[]) => values.reduce((all, one) => all + one, 0);
const ASKED = [
  counter('Redis commands', ({ commands }) => commands.commands),
  counter('HTTP reads', ({ reads }) => sum(reads.map((one) => one.requests))),
  counter('failed reads', ({ reads }) => sum(reads.map((one) => one.failed))),
  counter('error replies', ({ errors }) => errors.replies),
];
const STORAGE = [
  counter('log', ({ log }) => log?.bytes_written ?? NaN),
  counter('flushes', ({ flushes }) => flushes.bytes_written),
  counter('merges', ({ merges }) => merges.bytes_written),
];
const WORK = [
  counter('CPU', ({ server }) => (server.cpu_user_seconds + server.cpu_system_seconds) * 100),
];

export function Charts() {
  return (
    <div class="smalls">
      <Small title="Samples by protocol" curves={BY_PROTOCOL} text={perSecond} />
      <Small title="Samples by outcome" curves={BY_OUTCOME} text={perSecond} />
      <Small title="Requests" curves={ASKED} text={perSecond} />
      <Small title="Memory" curves={MEMORY} text={bytes} />
      <Small title="Written to disk" curves={STORAGE} text={bytesPerSecond} />
      <Small title="CPU, percent of one core" curves={WORK} text={(value) => `${value.toFixed(1)}%`} />
    </div>
  );
}
