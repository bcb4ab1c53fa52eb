// What is shown, as a file made here; and the samples behind it, as the server exports them.

import { LanguageType, promQLLanguage } from '@prometheus-io/codemirror-promql';
import { exportSamples, type Format } from '../../components/export';
import { Exporting } from '../../components/exporting';
import { Menu } from '../../components/menu';
import { range, spanOf } from '../../components/span';
import { csvLine, download } from '../../format';
import { letter } from './drafts';
import { rows } from './lines';
import { answers, run } from './run';
import { asked } from './state';

function csv(): string {
  const shown = rows.peek();
  const labels = [...new Set(shown.flatMap((row) => Object.keys(row.labels)))].sort();
  const head = csvLine(['query', ...labels, 'timestamp', 'value']);
  const lines = shown.map((row) => csvLine([letter(row.query), ...labels.map((label) => row.labels[label] ?? ''), String(row.time_s), row.value]));
  return [head, ...lines, ''].join('\r\n');
}

function json(): string {
  const found = answers.peek().filter((answer) => answer?.data);
  return JSON.stringify(found.map((answer) => ({ query: answer!.text, data: answer!.data })), null, 1);
}

/** The selectors of the queries that are enabled. */
function selectors(): string[] {
  const { parser } = promQLLanguage(LanguageType.PromQL);
  const found = new Set<string>();
  for (const { text, isOff } of asked.peek()) {
    if (isOff) continue;
    parser.parse(text).iterate({ enter: (node) => { if (node.name === 'VectorSelector') found.add(text.slice(node.from, node.to)); } });
  }
  return [...found];
}

function raw(format: Format): void {
  void exportSamples(selectors(), run.peek()?.span ?? spanOf(range.peek()), format);
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
            {item('JSON', 'what is shown', close, () => download('latewood.json', json(), 'application/json'))}
            {item('Samples as CSV', 'what is stored in this time', close, () => raw('csv'))}
            {item('Samples as Arrow', 'what is stored in this time', close, () => raw('arrow'))}
          </ul>
        )}
      </Menu>
      <Exporting />
    </>
  );
}
