// Finds series: by labels or by key.

import { TabPanel, Tabs } from '../../components/tabs';
import { params } from '../../route';
import { ByKey } from './bykey';
import { ByLabel } from './bylabel';

const WAYS: [string, string][] = [['labels', 'By labels'], ['key', 'By key']];

export function Find() {
  const by = params.value.get('by') === 'key' ? 'key' : 'labels';
  return (
    <>
      <div class="tabs ways"><Tabs label="Find series" param="by" tabs={WAYS} chosen={by} /></div>
      <TabPanel param="by" chosen={by}>{by === 'key' ? <ByKey /> : <ByLabel />}</TabPanel>
    </>
  );
}
