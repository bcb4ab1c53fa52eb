// The share of late samples and their ages, minute by minute.

import { useMemo } from 'preact/hooks';
import { Chart, type Look } from '../../components/chart';
import { isShortcut } from '../../components/keys';
import { minutes, minuteText, moveMinute, p99_ms } from './minutes';
import { minute } from './state';
import { ageText } from './text';

export const LINEAR: Look = { stacked: false, zero: true, log: false, points: true };
export const LOGARITHMIC: Look = { ...LINEAR, zero: false, log: true };
const HEIGHT_PX = 200;
/** Round ages, from a millisecond to a hundred years. */
export const AGES_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500,
  ...[1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21_600, 43_200].map((s) => s * 1000),
  ...[1, 2, 7, 14, 30, 90, 180, 365, 730, 1825, 3650, 7300, 18_250, 36_500].map((days) => days * 86_400_000)];

interface Properties {
  title: string;
  index: number;
  values: (number | null)[];
  look: Look;
  format: (value: number) => string;
  ticks?: number[];
}

function PerMinute({ title, index, values, look, format, ticks }: Properties) {
  const times = useMemo(() => minutes.value.map((one) => one.start), [minutes.value]);
  const lines = useMemo(() => [{ label: title, index, values, isHidden: false }], [title, index, values]);
  const span = { from_ms: times[0] ?? 0, to_ms: times.at(-1) ?? 1 };
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <Chart label={`${title}, per minute`} times={times} lines={lines} span={span} look={look} height={HEIGHT_PX} focus={-1} format={format} ticks={ticks}
        onCursor={(at) => { minute.value = at === null ? null : times[at] ?? null; }} />
    </figure>
  );
}

export const percent = (value: number) => `${Number(value.toPrecision(3))} %`;

export function Times() {
  const all = minutes.value;
  const shares = useMemo(() => all.map((one) => (one.samples > 0 ? (100 * one.lateSamples) / one.samples : null)), [all]);
  const ages = useMemo(() => all.map(p99_ms), [all]);
  const key = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined || isShortcut(event)) return;
    event.preventDefault();
    moveMinute(by);
  };
  return (
    <section class="card times" aria-label="By minute" onKeyDown={key}>
      <div class="pair">
        <PerMinute title="Share of late samples" index={0} values={shares} look={LINEAR} format={percent} />
        <PerMinute title="Age p99 of late samples" index={1} values={ages} look={LOGARITHMIC} format={ageText} ticks={AGES_MS} />
      </div>
      <p class="hint said" aria-live="polite">{minuteText.value ?? 'By minute of arrival. Arrow keys show values.'}</p>
    </section>
  );
}
