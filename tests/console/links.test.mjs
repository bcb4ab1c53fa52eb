// Links whose parameters are broken: each page names the value that it cannot use and what it does
// instead, and does that. Parameters that the server judges are not here: its error is shown.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, BLUE, browsing, parameters, pixels, plainTexts, query, serving, START, texts } from './harness.mjs';

const SPAN = { from: String(START), to: String(START + 600_000) };
const KEY = 'room_temp{site="north"}';
const WRITTEN = Date.now();

const browser = browsing();
const server = serving(async () => {
  await server.importText([0, 1, 2].flatMap((at) => [
    ...['north', 'south'].map((site) => `room_temp{site="${site}"} ${at} ${START + at * 300_000}`),
    ...['a', 'b'].flatMap((of) => [1, 2].map((le) => `wait_bucket{of="${of}",le="${le}"} ${at * le} ${START + at * 300_000}`)),
  ]));
  await server.redis(
    ['TS.CREATE', 'tide'], ['TS.CREATE', 'tide:a'], ['TS.CREATE', 'tide:b'],
    ['TS.CREATERULE', 'tide', 'tide:b', 'AGGREGATION', 'avg', 60_000], ['TS.CREATERULE', 'tide', 'tide:a', 'AGGREGATION', 'max', 60_000],
    ['TS.ADD', 'tide', WRITTEN, 1], ['TS.ADD', 'tide', WRITTEN - 5000, 1],
  );
  // More late samples by another protocol.
  await server.importText([0, 1, 2].map((at) => `swell 1 ${WRITTEN - at * 1000}`));
});

const warnings = (page) => texts(page, '.page > .remarks .warning');
const legend = (page) => texts(page, '.legend .name');
const off = (page) => texts(page, '.legend [aria-pressed=false] .name');

/** The page says exactly these things about its address; each has the text after `The address has`. */
const says = (page, wanted) => becomes(async () => {
  const found = await warnings(page);
  return [found.length, wanted.filter((text) => !found.some((one) => one.startsWith(`warningThe address has ${text}`)))];
}, [wanted.length, []], page);

const open = (address) => browser.open(`${server.address}#/${address}`);
const graph = (parameters) => browser.open(query(server, { ...SPAN, q: 'room_temp', step: '10s', ...parameters }));
const explained = async (parameters) => {
  const page = await open(`explain?${new URLSearchParams({ ...SPAN, q: 'sum(rate(room_temp[10m]))', ...parameters })}`);
  await page.getByRole('treegrid').waitFor();
  return page;
};

test('times, lengths and words that are broken', async () => {
  for (const [address, wanted] of [
    ['query?q=room_temp&range=abc&step=x&refresh=often&view=grid', [
      'range=abc, which is not a duration such as 1h30m: the last 1h is shown.', 'step=x, which is not a duration such as 30s: the step fits the range.',
      'refresh=often, which is not a duration such as 1h30m or off: it does not refresh.', 'view=grid, which is not one of graph, table, json: the graph is shown.',
    ]],
    ['query?from=2026-01-01&to=7', ['from=2026-01-01, which is not a time in milliseconds: the last 1h is shown.']],
    ['query?from=1e3&to=1e4', ['from=1e3, which is not a time in milliseconds: the last 1h is shown.', 'to=1e4, which is not']],
    ['query?from=7&range=2h', ['from without to: the last 2h is shown.']],
    ['query?from=8&to=7', ['from=8, which is not before to=7: the last 1h is shown.']],
    [`query?range=${'long'.repeat(100)}`, [`range=${'long'.repeat(15)}..., which is not a duration`]],
    ['explain?q=1&range=abc&step=x&instant=yes', ['range=abc', 'step=x', 'instant=yes']],
    ['series?by=name&how=regex', ['by=name', 'how=regex']],
    [`series?key=${encodeURIComponent(KEY)}&range=abc&refresh=x&at=y`, ['range=abc', 'refresh=x', 'at=y']],
    ['series?delete=all&range=abc', ['delete=all, which is not one of samples, series: samples in this time are deleted.', 'range=abc']],
    ['late?by=host&ages=old&refresh=x', ['by=host', 'ages=old', 'refresh=x']],
    ['cardinality?idle=x', ['idle=x']],
    ['queries?by=user', ['by=user']],
    ['rules?only=failed&by=file&order=size&refresh=x', ['by=file', 'only=failed', 'order=size', 'refresh=x']],
    ['rules?by=group&order=state', ['order=state, which is not one of group, rules, failed']],
    ['alerts?state=inactive&order=size&refresh=x', ['state=inactive', 'order=size', 'refresh=x']],
    ['compaction?only=failed&refresh=x', ['only=failed', 'refresh=x']],
    ['server?refresh=x', ['refresh=x']],
  ]) {
    const page = await open(address);
    await says(page, wanted);
    await page.context().close();
  }
});

test('a refresh that is too short', async () => {
  for (const [address, least] of [['query?q=1', '1s'], ['late?', '1s'], [`series?key=${encodeURIComponent(KEY)}`, '1s'], ['rules?', '2s'], ['alerts?', '2s'], ['compaction?', '2s'], ['server?', '1s']]) {
    const page = await open(`${address}&refresh=100ms`);
    await says(page, [`refresh=100ms, which is not ${least} or more: it refreshes every ${least}.`]);
    await page.context().close();
  }
});

test('a step that is too short, or typed wrong', async () => {
  const page = await browser.open(query(server, { q: 'vector(1)', from: START, to: START + 30 * 86_400_000, step: '1s' }));
  await becomes(() => warnings(page), ['warningA step of 1s makes more than 10\u202f900 steps: one of 3m57s799ms is used.'], page);
  const step = page.getByRole('textbox', { name: 'Step' });
  await step.fill('soon');
  await step.press('Enter');
  await says(page, ['step=soon, which is not a duration such as 30s: the step fits the range.']);
  await step.fill('1h');
  await step.press('Enter');
  await becomes(() => warnings(page), [], page);
});

test('an order by no column: rows have the order of the page', async () => {
  const first = async (page) => (await plainTexts(page, '.list td:first-child'))[0];
  for (const [address, wanted, top] of [
    ['compaction?order=destiny', ['order=destiny, which is not one of source, destination, aggregator, bucket, align, dirty, failed, open, recomputed, with - before it to descend: rows are sorted by Source.'], 'tide'],
    ['compaction?order=--source', ['order=--source, which'], 'tide'],
    ['late?order=-age', ['order=-age, which is not one of name, samples, late, share, p50, p90, p99, max, delay99, delay999, with - before it to descend: rows are sorted by Late, descending.'], 'prometheus_text'],
    // Of a column that other rows have.
    ['late?by=metric&order=samples', ['order=samples, which is not one of name, late, share, p50'], 'swell'],
    ['late?by=metric&order=late', [], 'tide'],
  ]) {
    const page = await open(address);
    await becomes(() => first(page), top, page);
    await says(page, wanted);
    await page.context().close();
  }
});

test('a look of other letters, or a logarithm of a stack: lines are plain', async () => {
  for (const look of ['stacked', 'x', 'sl']) {
    const page = await graph({ look });
    await becomes(() => legend(page).then((all) => all.length), 2, page);
    await says(page, [`look=${look}, which is not made of the letters s (stacked), z (from zero), l (logarithmic) and p (points), where s excludes l: lines are drawn without it.`]);
    assert.equal(await page.locator('.tabs .toggle[aria-pressed=true]').count(), 0);
    await page.getByRole('button', { name: 'Points' }).click();
    await says(page, []);
    assert.equal(parameters(page).get('look'), 'p');
    await page.context().close();
  }
});

test('a heat map of no histogram: the first one is shown, or lines', async () => {
  const shown = await graph({ q: 'wait_bucket', heat: 'waits' });
  await says(shown, ['heat=waits, which is not on or a histogram of the answer: the heat map shows A: all 2, summed by le.']);
  const choice = shown.getByRole('combobox', { name: 'Histogram' });
  await choice.selectOption({ index: 1 });
  await says(shown, []);
  // What the page itself puts there is understood.
  const other = await browser.open(shown.url());
  await becomes(() => other.getByRole('combobox', { name: 'Histogram' }).inputValue().catch(() => ''), await choice.inputValue(), other);
  await says(other, []);
  const lines = await graph({ heat: 'waits' });
  await says(lines, ['heat=waits, which is not on or a histogram of the answer: lines are drawn.']);
  await becomes(() => legend(lines).then((all) => all.length), 2, lines);
  const unanswered = await graph({ q: 'rate(', heat: 'a histogram' });
  await says(unanswered, ['heat=a histogram, which']);
});

test('hidden series that are none: nothing is hidden by them', async () => {
  const page = await graph({});
  await becomes(() => legend(page).then((all) => all.length), 2, page);
  await page.locator('.legend button').first().click({ modifiers: ['Control'] });
  await becomes(() => off(page), [KEY], page);
  const name = parameters(page).get('hide');
  // What was hidden here may be without samples later.
  await page.goto(query(server, { ...SPAN, q: 'room_temp{site="south"}', hide: name }));
  await becomes(() => legend(page), ['room_temp{site="south"}'], page);
  await says(page, []);
  const other = await graph({ hide: `${name},nobody,${KEY},room` });
  await becomes(() => off(other), [KEY], other);
  await says(other, [`hide=nobody,${KEY},room, which is not a series of the answer: it hides nothing.`]);
  assert.ok(await pixels(other, BLUE) === 0);
});

test('places that no query has: nothing is switched off by them', async () => {
  const page = await browser.open(`${server.address}#/query?${new URLSearchParams([...Object.entries(SPAN), ['q', 'room_temp'], ['q', '1'], ['off', '1,2,B']])}`);
  await says(page, ['off=2,B, which is not a place of a query (the first is 0): it switches none off.']);
  assert.deepEqual(await texts(page, '.query.off .letter'), ['B']);
});

test('nodes and levels of an explanation that are none', async () => {
  const rows = (page) => page.getByRole('treegrid').getByRole('row').count();
  const page = await explained({ node: 'sum', depth: 'all', fold: '1,rate' });
  await says(page, [
    'node=sum, which is not a node of the explanation: the page chooses one.', 'depth=all, which is not a number of levels: all are open.',
    'fold=rate, which is not a node of the explanation: it opens and closes nothing.',
  ]);
  await becomes(() => rows(page), 3, page);
  const beyond = await explained({ node: '3', depth: '1', fold: '0,9' });
  await says(beyond, ['node=3, which', 'fold=9, which']);
  await becomes(() => rows(beyond), 2, beyond);
  await beyond.getByRole('button', { name: 'Expand all' }).click();
  await becomes(() => rows(beyond), 4, beyond);
  await says(beyond, ['node=3, which']);
});

test('a page of samples outside of the range: the first one is shown', async () => {
  const address = (at, from = START) => `series?${new URLSearchParams({ key: KEY, from, to: START + 600_000, at })}`;
  const page = await open(address(START / 1000 - 1));
  await says(page, [`at=${START / 1000 - 1}, which is not a time in seconds in the range: the first page is shown.`]);
  await becomes(() => plainTexts(page, '.samples .bar [role=status]').then((all) => all[0]?.slice(0, 9)), '3 samples', page);
  // The button that zooms out leaves no page of the last range.
  const inside = await open(address(START / 1000 + 300));
  await becomes(() => plainTexts(inside, '.samples .bar [role=status]').then((all) => all[0]?.slice(0, 9)), '2 samples', inside);
  await says(inside, []);
  await inside.getByRole('button', { name: 'Later' }).click();
  await becomes(async () => parameters(inside).get('at'), null, inside);
  await says(inside, []);
});
