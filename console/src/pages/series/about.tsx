// What a series is made of: figures, labels, and the rules that write to it and read from it.

import { FigureList, type Figure } from '../../components/figures';
import { Table, type Column } from '../../components/table';
import { durationText, timeText } from '../../clock';
import { bytes, count, seriesText } from '../../format';
import { keyHref, type Rule, type Series } from './state';

function figures(series: Series): Figure[] {
  const { retention_ms, ignore_max_time_diff_ms: time, ignore_max_value_diff: value } = series;
  return [
    ['Samples', count(series.samples)],
    ['Late since it was made', count(series.late_samples)],
    ['Came last, as far as known', lastCame(series)],
    ['Late, waiting to be merged', count(series.late_pending)],
    ['First', series.first_ms === null ? 'none' : timeText(series.first_ms)],
    ['Last', series.last_ms === null ? 'none' : timeText(series.last_ms)],
    ['Chunks in memory', `${count(series.memory_chunks)}, ${bytes(series.memory_chunks_bytes)}`],
    ['Chunks in blocks', `${count(series.block_chunks)}, ${bytes(series.block_chunks_bytes)} on disk`],
    ['Memory in all', bytes(series.memory_bytes)],
    ['Chunk size', bytes(series.chunk_size_bytes)],
    ['Encoding', series.encoding],
    ['Retention', retention_ms === 0 ? 'all samples are kept' : durationText(retention_ms)],
    ['Duplicates', series.duplicate_policy ?? "the server's policy"],
    ['IGNORE', time === 0 && value === 0 ? 'off' : `within ${durationText(time)} and ${value}`],
  ];
}

/** Of samples that a start took from the log the server does not know it. */
function lastCame({ late_samples, late_arrived_ms }: Series): string {
  if (late_arrived_ms !== null) return timeText(late_arrived_ms);
  return late_samples === 0 ? 'none' : 'unknown';
}

export function About({ series }: { series: Series }) {
  return (
    <section class="card about" aria-labelledby="about">
      <h2 id="about">Series</h2>
      <FigureList kind="figures-of" all={figures(series)} />
      <div class="named">
        <div>
          <h3>Labels</h3>
          {series.labels.length === 0 && <p class="hint">None.</p>}
          <ul>{series.labels.map(({ name, value }, at) => <li key={at}><code>{name}</code><code>{value}</code></li>)}</ul>
        </div>
        <div>
          <h3>In PromQL</h3>
          <code>{seriesText(series.metric)}</code>
        </div>
      </div>
    </section>
  );
}

const span = ({ first_ms, last_ms }: { first_ms: number; last_ms: number }) => `${timeText(first_ms)} to ${timeText(last_ms)}`;

function columnsOf(key: string): Column<Rule>[] {
  const other = (rule: Rule) => (rule.source === key ? rule.destination : rule.source);
  return [
    { name: 'way', title: '', cell: (rule) => (rule.source === key ? 'to' : 'from'), width: '62px' },
    { name: 'key', title: 'Series', by: other, cell: (rule) => <a href={keyHref(other(rule))} title={other(rule)}>{other(rule)}</a> },
    { name: 'aggregator', title: 'Aggregator', cell: (rule) => rule.aggregator, width: '112px' },
    { name: 'bucket', title: 'Bucket', by: (rule) => rule.bucket_ms, cell: (rule) => <span title={`aligned to ${rule.align_ms} ms`}>{durationText(rule.bucket_ms)}</span>, isNumber: true, width: '84px' },
    { name: 'dirty', title: 'Dirty', by: (rule) => rule.dirty_buckets + rule.backfill_buckets, cell: (rule) => count(rule.dirty_buckets + rule.backfill_buckets), isNumber: true, width: '72px' },
    { name: 'failed', title: 'Failed', by: (rule) => rule.failed_buckets, cell: (rule) => <span class={rule.failed_buckets > 0 ? 'error' : ''} title={rule.failed.map(span).join('\n')}>{count(rule.failed_buckets)}</span>, isNumber: true, width: '72px' },
    { name: 'open', title: 'Open bucket', cell: (rule) => (rule.open ? <span title={span(rule.open)}>{timeText(rule.open.first_ms)}</span> : 'none'), width: '182px' },
    { name: 'recomputed', title: 'Recomputed', cell: (rule) => (rule.recomputed_ms === null ? 'not since the start' : timeText(Math.floor(rule.recomputed_ms / 1000) * 1000)), width: '182px' },
  ];
}

export function Rules({ series }: { series: Series }) {
  const rules = series.source ? [series.source, ...series.rules] : series.rules;
  const failed = rules.filter((rule) => rule.failed_buckets > 0);
  return (
    <section class="card rules-of" aria-labelledby="rules">
      <h2 id="rules">Compaction rules</h2>
      {rules.length === 0
        ? <p class="hint">No rule writes to this series or reads from it.</p>
        : <Table label="Rules" columns={columnsOf(series.key)} rows={rules} id={(_, index) => index} />}
      {failed.map((rule) => (
        <p class="error" key={rule.destination}>Buckets of {rule.destination} that cannot be recomputed, as samples are damaged: {rule.failed.map(span).join('; ')}</p>
      ))}
    </section>
  );
}
