// The lists of the page, and what their rows mean.

import { bytes } from '../../format';
import { IdleList } from './idle';
import { List, type Entry, type Tsdb, type Way } from './list';
import { counted, narrowed } from './selector';

export function Lists({ data, filter, focus }: { data: Tsdb; filter: string; focus: string }) {
  const ofLabel = (row: Entry): Way => ({ focus: row.name, query: counted(row.name, narrowed(filter, row.name, '!=', '')) });
  const ofPair = (label: string, value: string): Way => {
    const match = narrowed(filter, label, '=', value);
    return { match, query: label === '__name__' ? match : counted('__name__', match) };
  };
  const total = data.totalSeries;
  return (
    <div class="lists">
      {focus !== '' && (
        <List title={`Series by value of ${focus}`} head="Value" unit="Series" rows={data.seriesCountByFocusLabelValue ?? []} total={total}
          way={(row) => ofPair(focus, row.name)} />
      )}
      <List title="Series by metric" head="Metric" unit="Series" rows={data.seriesCountByMetricName} total={total} way={(row) => ofPair('__name__', row.name)} />
      <List title="Series by pair" head="Label and value" unit="Series" rows={data.seriesCountByLabelValuePair} total={total}
        way={({ label, labelValue }) => ofPair(label, labelValue)} />
      <IdleList data={data} filter={filter} />
      <List title="Series by label" head="Label" unit="Series" rows={data.seriesCountByLabelName} total={total} way={ofLabel} />
      <List title="Values by label" head="Label" unit="Values" rows={data.labelValueCountByLabelName} total={null} way={ofLabel} />
      <List title="Memory by label" head="Label" unit="Memory" rows={data.memoryInBytesByLabelName} total={null} show={bytes} way={ofLabel} />
    </div>
  );
}
