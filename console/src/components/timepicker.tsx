// The choice of a time range: a length up to now, or two times in the zone that is shown.

import { useState } from 'preact/hooks';
import { durationText, parseDuration, parseTime, secondText, timeText, zone } from '../clock';
import { Icon } from './icon';
import { Menu } from './menu';
import { range, setRange, spanOf } from './span';

const LENGTHS = ['5m', '15m', '1h', '3h', '6h', '12h', '1d', '2d', '1w', '30d', '90d', '365d'];

function label(): string {
  const shown = range.value;
  return 'from_ms' in shown ? `${secondText(shown.from_ms)} to ${secondText(shown.to_ms)}` : `Last ${durationText(shown.last_ms)}`;
}

function Panel({ close }: { close: () => void }) {
  const span = spanOf(range.value);
  const [from, setFrom] = useState(timeText(span.from_ms));
  const [to, setTo] = useState(timeText(span.to_ms));
  const [text, setText] = useState('');
  const fix = (event: SubmitEvent) => {
    event.preventDefault();
    const [from_ms, to_ms] = [parseTime(from), parseTime(to)];
    if (from_ms === null || to_ms === null) return setText('Times must be like 2026-11-24 13:05:09');
    if (from_ms >= to_ms) return setText('The start must be before the end');
    setRange({ from_ms, to_ms });
    close();
  };
  const custom = (event: Event & { currentTarget: HTMLInputElement }) => {
    const last_ms = parseDuration(event.currentTarget.value);
    if (last_ms === null) return setText('A length must be like 90m or 1h30m');
    setRange({ last_ms });
    close();
  };
  return (
    <div class="timepicker">
      <fieldset>
        <legend>Up to now</legend>
        <div class="lengths">
          {LENGTHS.map((length) => (
            <button key={length} type="button" onClick={() => { setRange({ last_ms: parseDuration(length)! }); close(); }}>{length}</button>
          ))}
        </div>
        <label>Other<input placeholder="90m" onChange={custom} /></label>
      </fieldset>
      <form onSubmit={fix}>
        <fieldset>
          <legend>Fixed times ({zone.value === 'utc' ? 'UTC' : 'local time'})</legend>
          <label>From<input name="from" value={from} onInput={(event) => setFrom(event.currentTarget.value)} /></label>
          <label>To<input name="to" value={to} onInput={(event) => setTo(event.currentTarget.value)} /></label>
          <button type="submit" class="primary">Show</button>
        </fieldset>
      </form>
      {text && <p class="error" role="alert">{text}</p>}
    </div>
  );
}

export function TimePicker() {
  const move = (by: number) => {
    const { from_ms, to_ms } = spanOf(range.peek());
    const shift = (to_ms - from_ms) * by;
    setRange({ from_ms: from_ms + shift, to_ms: to_ms + shift });
  };
  const widen = () => {
    const shown = range.peek();
    if (!('from_ms' in shown)) return setRange({ last_ms: shown.last_ms * 2 });
    const half = (shown.to_ms - shown.from_ms) / 2;
    setRange({ from_ms: shown.from_ms - half, to_ms: shown.to_ms + half });
  };
  return (
    <div class="group">
      <button type="button" title="Earlier" aria-label="Earlier" onClick={() => move(-0.5)}><Icon name="left" /></button>
      <Menu label={label()} title="Time range">{(close) => <Panel close={close} />}</Menu>
      <button type="button" title="Later" aria-label="Later" onClick={() => move(0.5)}><Icon name="right" /></button>
      <button type="button" title="Zoom out: twice as long" aria-label="Zoom out" onClick={widen}><Icon name="out" /></button>
    </div>
  );
}
