// A choice that the address keeps; a value of the address that is not offered is offered too.

import { params, setParams } from '../route';

interface Properties {
  label: string;
  /** The parameter of the address. */
  param: string;
  values: string[];
  /** What holds without the parameter. */
  initial: string;
  /** A value as a text. */
  text?: (value: string) => string;
  /** Leaves no entry in the history. */
  replace?: boolean;
}

export function Choice({ label, param, values, initial, text = String, replace }: Properties) {
  const chosen = params.value.get(param) || initial;
  return (
    <label class="inline">{label}
      <select value={chosen} onChange={({ currentTarget: { value } }) => setParams({ [param]: value === initial ? null : value }, replace)}>
        {[...new Set([...values, chosen])].map((one) => <option key={one} value={one}>{text(one)}</option>)}
      </select>
    </label>
  );
}

const REFRESHES = ['off', '2s', '5s', '10s', '30s', '1m', '5m'];

/** How often a page asks again: a duration, or `off`. */
export function RefreshChoice({ initial = 'off' }: { initial?: string }) {
  return <Choice label="Refresh" param="refresh" values={REFRESHES} initial={initial} replace />;
}
