// The chart with its legend: a click on a series shows it alone, with Ctrl or Shift switches it.

import { signal } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Chart } from '../../components/chart';
import { setRange, type Span } from '../../components/span';
import { Swatch } from '../../components/swatch';
import { useFill } from '../../components/window';
import { timeText, secondText } from '../../clock';
import { count, short } from '../../format';
import { Heat, isHeat } from './heat';
import { lines, LINES_MAX, seriesTotal, times, type SeriesLine } from './lines';
import { run } from './run';
import { heat, hidden, look, noteRange, onSteps, setHidden, width_px, zoomBack } from './state';

/** What is left of the window below a chart for its legend. */
const LEGEND_PX = 130;
const LEAST_PX = 280;

/** The place of the cursor in `times`. */
const cursor = signal<number | null>(null);

/** The value at the cursor, or the last one: rounded if it is long, with all digits below the pointer. */
function Value({ line }: { line: SeriesLine }) {
  const at = cursor.value;
  let shown = at !== null ? line.values[at] : undefined;
  for (let back = line.values.length - 1; at === null && shown == null && back >= 0; back--) shown = line.values[back];
  if (shown == null) return <span class="value" />;
  const all = String(shown);
  return <span class="value" title={all}>{Number.isFinite(shown) && all.length <= 10 ? all : short(shown)}</span>;
}

function toggle(line: SeriesLine, isSingle: boolean): void {
  const names = lines.peek().map((one) => one.name);
  const off = new Set(hidden.peek());
  if (isSingle) {
    if (!off.delete(line.name)) off.add(line.name);
    return setHidden(off);
  }
  const isAlone = !off.has(line.name) && names.every((name) => name === line.name || off.has(name));
  setHidden(new Set(isAlone ? [] : names.filter((name) => name !== line.name)));
}

function Legend({ onFocus }: { onFocus: (index: number) => void }) {
  const at = cursor.value;
  return (
    <div class="legend">
      <p class="at">{at !== null && times.value[at] !== undefined ? timeText(times.value[at]) : 'last values'}</p>
      <ul onMouseLeave={() => onFocus(-1)}>
        {lines.value.map((line, index) => (
          <li key={line.name}>
            <button type="button" aria-pressed={!hidden.value.has(line.name)} onMouseEnter={() => onFocus(index)}
              title="Show alone; with Ctrl or Shift: switch on or off"
              onClick={(event) => toggle(line, event.ctrlKey || event.metaKey || event.shiftKey)}>
              <Swatch index={index} /><span class="name">{line.label}</span><Value line={line} />
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

function zoom(span: Span): void {
  noteRange();
  setRange(onSteps(span));
}

function Lines({ height }: { height: number }) {
  const [focus, setFocus] = useState(-1);
  const off = hidden.value;
  const drawn = useMemo(
    () => lines.value.map((line, index) => ({ label: line.label, index, values: line.values, isHidden: off.has(line.name) })),
    [lines.value, off],
  );
  const now = run.value;
  const total = seriesTotal.value;
  return (
    <>
      {now && (
        <Chart label={`${total} series from ${secondText(now.span.from_ms)} to ${secondText(now.span.to_ms)}`} times={times.value} lines={drawn} span={now.span}
          look={look.value} height={height} focus={focus} onSpan={zoom} onBack={zoomBack} onCursor={(at) => { cursor.value = at; }} />
      )}
      {heat.value !== null && <p class="hint">A heat map needs series with the label le, such as <code>sum by (le) (rate(NAME_bucket[5m]))</code>.</p>}
      {total > LINES_MAX && <p class="hint">The first {count(LINES_MAX)} of {count(total)} series are drawn. The table shows all; aggregate, or use topk, to draw what matters.</p>}
      <Legend onFocus={setFocus} />
    </>
  );
}

export function Graph() {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const observer = new ResizeObserver(() => { width_px.value = box.current?.clientWidth || 1000; });
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const height = useFill(box, LEGEND_PX, LEAST_PX);
  return <div class="graph" ref={box}>{isHeat.value ? <Heat height={height} onSpan={zoom} onBack={zoomBack} /> : <Lines height={height} />}</div>;
}
