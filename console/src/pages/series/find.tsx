// Finds series: by labels or by key.

import { Broken, wordOf } from '../../components/broken';
import { TabPanel, Tabs } from '../../components/tabs';
import { params } from '../../route';
import { ByKey } from './bykey';
import { ByLabel } from './bylabel';

const WAYS: [string, string][] = [['labels', 'By labels'], ['key', 'By key']];

const CHECKS = [wordOf('by', WAYS.map(([name]) => name), 'series are found by labels'), wordOf('how', ['prefix', 'pattern'], 'keys that begin with the text are listed')];

export function Find() {
  const by = params.value.get('by') === 'key' ? 'key' : 'labels';
  return (
    <>
      <Broken checks={CHECKS} />
      <div class="tabs ways"><Tabs label="Find series" param="by" tabs={WAYS} chosen={by} /></div>
      <TabPanel param="by" chosen={by}>{by === 'key' ? <ByKey /> : <ByLabel />}</TabPanel>
    </>
  );
}
