// The Series page, as somebody sees it who uses it.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { becomes, BLUE, browsing, ORANGE, parameters, pixels, plainTexts, query, serving, START, tabTo, texts, VIOLET } from './harness.mjs';

const HOSTILE = '<img src=x onerror=alert(1)> "q" \\';
// Parentheses are not allowed in values of labels.
const VALUE = '<img src=x onerror=alert`1`>"\\';
const BYTES = Buffer.from([0x62, 0xff, 0x20, 0x22, 0x0a, 0x01]);
const LONG = 'flow_rate{site="a"}';
const MANY = 12_000;

async function fill() {
  const long = Array.from({ length: 25_000 }, (_, at) => `flow,site=a rate=${at % 100} ${START + at * 1000}`);
  await server.write(long);
  await server.write(Array.from({ length: MANY }, (_, at) => `many,no=${at} v=${at} ${START}`));
  await server.redis(
    ['TS.CREATE', 'room:1', 'RETENTION', 0, 'DUPLICATE_POLICY', 'LAST', 'IGNORE', 10, 0.5, 'LABELS', 'site', 'north', 'x', '1', 'x', '2'],
    ['TS.CREATE', 'room:1:avg', 'LABELS', 'site', 'north'],
    ['TS.CREATERULE', 'room:1', 'room:1:avg', 'AGGREGATION', 'avg', 60_000],
    ...Array.from({ length: 50 }, (_, at) => ['TS.ADD', 'room:1', START + at * 10_000, at]),
    ['TS.ADD', 'room:1', START + 500_000, 'nan'],
    ['TS.ADD', HOSTILE, START, 1, 'LABELS', HOSTILE, VALUE],
    ['TS.ADD', BYTES, START, 7],
    // One has all labels of the other, and two have the same.
    ['TS.ADD', 'cpu', START, 1], ['TS.ADD', 'cpu:more', START, 2, 'LABELS', '__name__', 'cpu', 'host', 'a'],
    ['TS.ADD', 'twin:1', START, 1, 'LABELS', '__name__', 'twin', 'a', 'b'], ['TS.ADD', 'twin:2', START, 2, 'LABELS', '__name__', 'twin', 'a', 'b'],
    ['TS.CREATE', 'empty'],
    ['ACL', 'SETUSER', 'limited', 'on', '>secret', '+@all', '%RW~room*'],
  );
  await server.importText(['+Inf', '-Inf', 'NaN', '5'].map((value, at) => `odd{a="b"} ${value} ${START + at}`));
}

const browser = browsing();
const server = serving(fill);

const address = (parameters = {}) => `${server.address}#/series?${new URLSearchParams(parameters)}`;
const status = async (page) => (await plainTexts(page, '.found[role=status], .found [role=status]'))[0];
const table = (page, label) => page.getByRole('region', { name: label, exact: true });
const rows = (page, label) => table(page, label).locator('tbody tr:not([aria-hidden])').evaluateAll((found) => found.map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join(' | ')));
const said = async (page) => (await plainTexts(page, '.samples .bar [role=status]'))[0];
const keys = (page) => plainTexts(page, '.graph-of .keys > span');
const line = (page, name) => page.getByRole('group', { name, exact: true }).textContent();
const figure = (page, name) => page.locator('.figures-of div', { has: page.getByText(name, { exact: true }) }).locator('dd').textContent();

test('series are found by a selector, and ten thousand of them are listed at once', async () => {
  const page = await browser.open(address());
  await becomes(() => status(page), 'The first 10 000 series are listed; narrow the selector to find others.', page);
  await page.locator('.query .cm-content').click();
  await page.keyboard.insertText('{no=~"11..."}');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await becomes(() => status(page), '1 000 series', page);
  await page.getByRole('button', { name: 'Labels' }).click();
  assert.equal((await rows(page, 'Series'))[0], 'many_v | no="11000"');
  assert.ok((await rows(page, 'Series')).length < 100);
  await page.getByRole('link', { name: 'many_v' }).first().click();
  await becomes(async () => parameters(page).get('key'), 'many_v{no="11000"}', page);
  await becomes(() => rows(page, 'Samples'), [`2026-01-01 01:00:00 | 11000 |  | ${START}`], page);
  await page.goBack();
  await becomes(() => status(page), '1 000 series', page);
  await page.goto(address({ select: 'nothing' }));
  await page.getByRole('button', { name: 'List all series' }).click();
  await becomes(() => status(page), 'The first 10 000 series are listed; narrow the selector to find others.', page);
  await page.goto(address({ select: 'rate(x[1m])' }));
  await page.locator('.notice.error', { hasText: 'bad_data' }).waitFor();
});

test('keys are found by their beginning or a pattern, page by page', async () => {
  const page = await browser.open(address({ by: 'key' }));
  await page.getByLabel('Text').fill('room:');
  await page.keyboard.press('Enter');
  await becomes(async () => (await rows(page, 'Keys')).sort(), ['room:1', 'room:1:avg'], page);
  await page.getByLabel('Keys that').selectOption('pattern');
  await page.getByLabel('Text').fill('many*"1*');
  await page.getByRole('button', { name: 'Find' }).click();
  await becomes(() => status(page), '1 000 keys so far', page);
  const more = page.getByRole('button', { name: 'More' });
  for (const found of ['2 000 keys so far', '3 000 keys so far']) {
    await more.click();
    await becomes(() => status(page), found, page);
  }
  await more.focus();
  await page.keyboard.press('Enter');
  // 1, 10 to 19, 100 to 199, 1000 to 1999, 10000 to 11999.
  await becomes(() => status(page), '3 111 keys', page);
  const other = await browser.open(page.url());
  await becomes(() => status(other), '1 000 keys so far', other);
  await page.getByLabel('Text').fill('nothing');
  await page.keyboard.press('Enter');
  await page.getByText('No such keys').waitFor();
  await page.getByRole('button', { name: 'List all keys' }).click();
  await becomes(() => status(page), '1 000 keys so far', page);
});

test('a series has its settings, labels and rules, and rules lead to their series', async () => {
  const page = await browser.open(address({ key: 'room:1' }));
  await becomes(() => figure(page, 'Samples'), '51', page);
  assert.equal(await figure(page, 'Duplicates'), 'last');
  assert.equal(await figure(page, 'IGNORE'), 'within 10ms and 0.5');
  assert.equal(await figure(page, 'Last'), '2026-01-01 01:08:20');
  assert.deepEqual([await figure(page, 'Late since it was made'), await figure(page, 'Came last, as far as known')], ['0', 'none']);
  assert.deepEqual(await texts(page, '.about li code'), ['site', 'north', 'x', '1', 'x', '2']);
  assert.deepEqual(await texts(page, '.named > div:last-child code'), ['room:1{site="north", x="1"}']);
  assert.match((await rows(page, 'Rules'))[0], /^to \| room:1:avg \| AVG \| 1m \| 0 \| 0 \| 2026-01-01 01:08:00/);
  await page.getByRole('link', { name: 'room:1:avg' }).click();
  await becomes(async () => (await rows(page, 'Rules'))[0]?.slice(0, 13), 'from | room:1', page);
  await becomes(async () => (await rows(page, 'Samples')).length, 8, page);
  await page.getByRole('link', { name: 'room:1', exact: true }).click();
  await becomes(() => figure(page, 'Samples'), '51', page);
});

test('samples that are not finite are in the table and marked in the graph', async () => {
  const page = await browser.open(address({ key: 'odd{a="b"}' }));
  const time = '2026-01-01 01:00:00';
  await becomes(() => rows(page, 'Samples'), [
    `${time} | +Inf |  | ${START}`, `${time}.001 | -Inf |  | ${START + 1}`, `${time}.002 | NaN |  | ${START + 2}`, `${time}.003 | 5 |  | ${START + 3}`,
  ], page);
  assert.deepEqual(await keys(page), ['4 samples', '0 late, waiting to be merged', '3 NaN, +Inf or -Inf']);
  // The sample without a neighbour is a point.
  assert.ok(await pixels(page, BLUE) > 3 && await pixels(page, VIOLET) > 20);
  assert.equal(await line(page, 'TS.RANGE'), `TS.RANGE "odd{a=\\"b\\"}" ${START} ${START + 3}`);
});

test('many samples are drawn by spans and listed by pages, fewer one by one; a link shows the same', async () => {
  const page = await browser.open(address({ key: LONG }));
  await becomes(() => keys(page), ['Each 2m:', 'least', 'mean', 'greatest'], page);
  const first = '10 000 samples, from 2026-01-01 01:00:00 to 2026-01-01 03:46:39, and more';
  await becomes(() => said(page), first, page);
  await page.getByRole('button', { name: 'Next page' }).click();
  await becomes(() => said(page), '10 000 samples, from 2026-01-01 03:46:40 to 2026-01-01 06:33:19, and more', page);
  await page.getByRole('button', { name: 'Next page' }).click();
  const last = '5 000 samples, from 2026-01-01 06:33:20 to 2026-01-01 07:56:39';
  await becomes(() => said(page), last, page);
  const other = await browser.open(page.url());
  await becomes(() => said(other), last, other);
  await becomes(() => keys(other), ['Each 2m:', 'least', 'mean', 'greatest'], other);
  await page.getByRole('button', { name: 'First page' }).click();
  await becomes(() => said(page), first, page);
  await page.locator('.u-over').hover();
  await becomes(async () => (await keys(page))[1], 'least 0', page);
  await page.locator('.chart').focus();
  await page.keyboard.press('+');
  await page.mouse.move(0, 0);
  await becomes(async () => (await keys(page))[0], 'Each 1m:', page);
  await page.keyboard.press('+');
  await becomes(() => keys(page), ['6 250 samples', '0 late, waiting to be merged', '0 NaN, +Inf or -Inf'], page);
  assert.equal((await said(page)).slice(0, 13), '6 250 samples');
  await page.keyboard.press('0');
  await becomes(async () => (await keys(page))[0], 'Each 1m:', page);
  await page.keyboard.press('0');
  await becomes(() => said(page), first, page);
});

test('late samples are marked in the graph and in the table while they wait to be merged', async () => {
  const now = Date.now();
  const late = Array.from({ length: 10 }, (_, at) => now - 600_000 + at * 1000 + 500);
  await server.redis(['TS.CREATE', 'tide'], ...Array.from({ length: 1200 }, (_, at) => ['TS.ADD', 'tide', now - 1_200_000 + at * 1000, 1]));
  // A series that gets more of them is not settled.
  let turn = 0;
  const more = () => server.redis(['TS.ADD', 'tide', late[turn++ % late.length], 2, 'ON_DUPLICATE', 'LAST']);
  while (turn < late.length) await more();
  const timer = setInterval(() => void more(), 300);
  try {
    const page = await browser.open(address({ key: 'tide', range: '1h', refresh: '1s' }));
    await becomes(() => keys(page), ['1 210 samples', '10 late, waiting to be merged', '0 NaN, +Inf or -Inf'], page);
    assert.ok(await pixels(page, ORANGE) > 20);
    await page.getByRole('button', { name: 'Late', exact: true }).click();
    const times = late.map((time) => `2 | waiting | ${time}`);
    await becomes(async () => (await rows(page, 'Samples')).slice(0, 10).map((row) => row.replace(/^.*? \| /, '')), times, page);
    clearInterval(timer);
    await becomes(() => keys(page), ['1 210 samples', '0 late, waiting to be merged', '0 NaN, +Inf or -Inf'], page);
    // Samples and figures are two requests.
    await becomes(() => figure(page, 'Late, waiting to be merged'), '0', page);
    assert.match(await figure(page, 'Late since it was made'), /^[1-9]/, 'it stays when they are merged');
    assert.match(await figure(page, 'Came last, as far as known'), /\d\d:\d\d:\d\d(\.\d+)?$/);
  } finally {
    clearInterval(timer);
  }
});

test('hostile names are texts, and lines for redis-cli quote them', async () => {
  const page = await browser.open(address({ key: HOSTILE }));
  await becomes(() => texts(page, 'h1'), [HOSTILE], page);
  await becomes(() => texts(page, '.about li code'), [HOSTILE, VALUE], page);
  assert.equal(await page.locator('main img').count(), 0);
  assert.equal(await line(page, 'TS.INFO'), 'TS.INFO "<img src=x onerror=alert(1)> \\"q\\" \\\\"');
  await page.getByRole('link', { name: 'Query', exact: true }).last().click();
  await becomes(() => texts(page, '.legend .name').then((found) => found.length), 1, page);
  assert.ok(parameters(page).get('q').includes('onerror'));
  await page.goto(address({ by: 'key', text: 'b\\xff' }));
  await page.getByRole('link', { name: 'b\\xff' }).click();
  await becomes(() => line(page, 'TS.INFO').catch(() => ''), 'TS.INFO "b\\xff \\"\\n\\x01"', page);
  await becomes(() => rows(page, 'Samples'), [`2026-01-01 01:00:00 | 7 |  | ${START}`], page);
});

test('lines are copied, or selected where the browser has no clipboard', async () => {
  const page = await browser.open(address({ key: 'room:1' }), { permissions: ['clipboard-read', 'clipboard-write'] });
  const copy = page.getByRole('button', { name: 'Copy TS.INFO' });
  await copy.click();
  await becomes(() => texts(page, '.copyline [role=status]'), ['', 'Copied.'], page);
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'TS.INFO room:1');
  await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
  await copy.focus();
  await page.keyboard.press('Enter');
  await page.getByText('Selected, as this browser').waitFor();
  assert.equal(await page.evaluate(() => getSelection().toString()), 'TS.INFO room:1');
});

test('a selector of labels leads to the series with exactly these, and Query gets one of it alone', async () => {
  const page = await browser.open(address({ match: 'cpu' }));
  const selector = async () => new URLSearchParams((await page.getByRole('link', { name: 'Query', exact: true }).last().getAttribute('href')).split('?')[1]).get('q');
  await becomes(async () => parameters(page).get('key'), 'cpu', page);
  await becomes(selector, 'cpu{host=""}', page);
  await page.goto(address({ key: 'twin:2' }));
  await becomes(selector, 'twin{a="b", __key__="twin:2"}', page);
  await page.goto(address({ match: '{a="b", __name__="twin"}' }));
  await becomes(() => status(page), '2 series match; choose one.', page);
  await page.getByRole('link', { name: 'twin' }).nth(1).click();
  await becomes(() => texts(page, 'h1'), ['twin:2'], page);
});

test('the stored samples of the series are downloaded', async () => {
  const page = await browser.open(address({ key: 'twin:2' }));
  const file = async (name) => {
    await page.getByRole('button', { name: 'Download' }).click();
    const [download] = await Promise.all([page.waitForEvent('download'), page.locator('.panel button', { hasText: name }).click()]);
    return readFile(await download.path());
  };
  assert.deepEqual((await file('CSV')).toString().trim().split(/\r?\n/).slice(1).map((row) => row.split(',').slice(-2).join()), [`${START},2`]);
  assert.equal((await file('Arrow')).subarray(0, 4).readUInt32LE(), 0xffffffff);
});

test('rows of Query lead to their series in the same time, Cardinality to a list', async () => {
  const span = { from: String(START), to: String(START + 490_000) };
  const page = await browser.open(query(server, { ...span, q: '{__name__="room:1"}', view: 'table' }));
  await page.getByRole('link', { name: 'room:1', exact: true }).click();
  await becomes(async () => [parameters(page).get('key'), parameters(page).get('to')], ['room:1', span.to], page);
  await becomes(() => keys(page), ['50 samples', '0 late, waiting to be merged', '0 NaN, +Inf or -Inf'], page);
  await page.goto(`${server.address}#/cardinality?match=${encodeURIComponent('{site="north"}')}`);
  await page.getByRole('link', { name: 'List', exact: true }).click();
  await becomes(() => status(page), '2 series', page);
});

test('a key that is not there, one without samples, and one that may not be read say what to do', async () => {
  const page = await browser.open(address({ key: 'room:12345' }));
  await page.getByText('No such key').waitFor();
  await page.getByRole('link', { name: 'Find similar keys' }).click();
  await becomes(async () => (await rows(page, 'Keys')).sort(), ['room:1', 'room:1:avg'], page);
  await page.goto(address({ key: 'empty' }));
  await page.getByText('The series is empty').waitFor();
  await page.goto(address({ key: 'room:1', range: '1m' }));
  await page.getByRole('button', { name: 'Show all the time that has samples' }).click();
  await becomes(() => keys(page), ['51 samples', '0 late, waiting to be merged', '1 NaN, +Inf or -Inf'], page);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.locator('.login [name=user]').fill('limited');
  await page.locator('.login [name=password]').fill('secret');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Log out limited' }).waitFor();
  await page.evaluate((to) => { location.hash = to; }, '#/series?key=cpu');
  await page.locator('.notice.error', { hasText: 'limited may not read this series' }).waitFor();
  assert.match((await texts(page, '.notice.error code'))[0], /^ACL SETUSER limited \+ts\.info .* %R~cpu$/);
});

test('a narrow screen has no sideways scrolling', async () => {
  const narrow = { viewport: { width: 400, height: 800 } };
  for (const parameters of [{}, { by: 'key' }, { key: LONG }, { key: HOSTILE }, { key: 'room:1' }, { key: 'nothing '.repeat(60) }]) {
    const page = await browser.open(address(parameters), narrow);
    await page.locator('.samples, .table, .notice.empty').first().waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 400);
  }
});

test('what is typed as soon as a field is there stays', async () => {
  const page = await browser.open(`${server.address}#/series`);
  await page.getByRole('tab', { name: 'By key' }).waitFor();
  // Nothing that waits for a frame or a timer is done.
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 60_000);
  await page.getByRole('tab', { name: 'By key' }).click();
  await page.getByLabel('Text').pressSequentially('room:1:');
  await page.clock.runFor(10_000);
  assert.equal(await page.getByLabel('Text').inputValue(), 'room:1:');
});

test('everything is reached with the keyboard', async () => {
  const page = await browser.open(query(server, {}));
  await page.getByText('No query yet').waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('s');
  await page.getByRole('tab', { name: 'By key' }).focus();
  await page.keyboard.press('Enter');
  await page.getByLabel('Text').focus();
  await page.keyboard.type('room:1:');
  await page.keyboard.press('Enter');
  await becomes(() => rows(page, 'Keys'), ['room:1:avg'], page);
  await tabTo(page, 'room:1:avg');
  await page.keyboard.press('Enter');
  await becomes(() => keys(page), ['8 samples', '0 late, waiting to be merged', '0 NaN, +Inf or -Inf'], page);
  for (const name of ['All samples', 'Download', '8 samples from', 'Rules', 'Samples', 'TS.RANGE', 'Copy TS.RANGE']) await tabTo(page, name);
});
