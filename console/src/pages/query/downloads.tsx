// What is shown, as a file made here; and the samples behind it, as the server exports them.

import { exportSamples, type Format } from '../../components/export';
import { Exporting } from '../../components/exporting';
import { Menu } from '../../components/menu';
import { selectorsOf } from '../../components/selectors';
import { range, spanOf } from '../../components/span';
import { csvLine, download, labelOf } from '../../format';
import { letter } from './drafts';
import { answered, jsonParts } from './json';
import { found } from './lines';
import { run } from './run';
import { enabled } from './state';

/** In parts, as one text cannot hold every answer. */
function csv(): string[] {
  const all = found.peek();
  const names = [...new Set(all.flatMap(({ labels }) => Object.keys(labels)))].sort();
  const parts = all.map(({ query, labels, samples }) => {
    const of = csvLine([letter(query), ...names.map((name) => labelOf(labels, name))]);
    return samples.map(([time_s, value]) => `${of},${csvLine([String(time_s), value])}\r\n`).join('');
  });
  return [`${csvLine(['query', ...names, 'timestamp', 'value'])}\r\n`, ...parts];
}

function raw(format: Format): void {
  void exportSamples(selectorsOf(...enabled.peek().map(({ text }) => text)), run.peek()?.span ?? spanOf(range.peek()), format);
}

export function Downloads() {
  const item = (label: string, hint: string, close: () => void, act: () => void) => (
    <li><button type="button" onClick={() => { act(); close(); }}>{label}<small>{hint}</small></button></li>
  );
  return (
    <>
      <Menu label="Download" side="right">
        {(close) => (
          <ul class="list">
            {item('CSV', 'what is shown', close, () => download('latewood.csv', csv(), 'text/csv'))}
            {item('JSON', 'what is shown', close, () => download('latewood.json', [...jsonParts(answered.peek())], 'application/json'))}
            {item('Samples as CSV', 'what is stored in this time', close, () => raw('csv'))}
            {item('Samples as Arrow', 'what is stored in this time', close, () => raw('arrow'))}
          </ul>
        )}
      </Menu>
      <Exporting />
    </>
  );
}
