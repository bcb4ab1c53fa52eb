// What is wrong in the address of the Query page. Names of series and histograms can be judged only
// where the answers of all queries are there; until then they may be any name.

import { broken, brokenIn, RANGE, refreshOf, wordOf, type Check } from '../../components/broken';
import { histograms } from './heat';
import { lines } from './lines';
import { answers } from './run';
import { asked, hidden, isHash, isLook, stepProblem } from './state';

const LOOKS = 'made of the letters s (stacked), z (from zero), l (logarithmic) and p (points), where s excludes l';

/** Whether all queries have answers, and one of them has lines. */
const isAnswered = () => lines.value.length > 0 && asked.value.every(({ text }, at) => answers.value[at]?.data && answers.value[at].text === text);

/** Hidden series that were drawn here once: later answers may be without them. */
const drawn = new Set<string>();

const HIDE: Check = () => {
  for (const { name } of lines.value) if (hidden.value.has(name)) drawn.add(name);
  return brokenIn('hide', (name) => isHash(name) && (!isAnswered() || drawn.has(name)), 'a series of the answer', 'it hides nothing');
};

const HEAT: Check = () => {
  const all = histograms.value;
  const isFit = (name: string) => name === 'on' || all.some((one) => one.name === name) || (isHash(name) && all.length === 0 && !isAnswered());
  return broken('heat', isFit, 'on or a histogram of the answer', all[0] ? `the heat map shows ${all[0].label}` : 'lines are drawn');
};

export const CHECKS: Check[] = [
  ...RANGE, stepProblem, refreshOf('it does not refresh'), wordOf('view', ['graph', 'table', 'json'], 'the graph is shown'),
  () => brokenIn('off', (place) => asked.value.some((_, at) => String(at) === place), 'a place of a query (the first is 0)', 'it switches none off'),
  () => broken('look', isLook, LOOKS, 'lines are drawn without it'), HEAT, HIDE,
];
