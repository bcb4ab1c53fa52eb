// Finds series: by labels or by key.

import { params, setParams } from '../../route';
import { ByKey } from './bykey';
import { ByLabel } from './bylabel';

const WAYS: [string | null, string][] = [[null, 'By labels'], ['key', 'By key']];

export function Find() {
  const by = params.value.get('by') === 'key' ? 'key' : null;
  return (
    <>
      <div class="tabs ways">
        <div role="tablist" aria-label="Find series">
          {WAYS.map(([way, title]) => (
            <button key={title} type="button" role="tab" aria-selected={by === way} onClick={() => setParams({ by: way })}>{title}</button>
          ))}
        </div>
      </div>
      {by === 'key' ? <ByKey /> : <ByLabel />}
    </>
  );
}
