// The Compaction page, as somebody sees it who uses it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, parameters, Server, serving, texts } from './harness.mjs';

const HOSTILE = '<img src=x onerror=alert(1)>';

const browser = browsing();
const server = serving(async () => {
  await server.redis(
    ['TS.CREATE', 'room'], ['TS.CREATE', 'room:1m'], ['TS.CREATE', 'room:1h'], ['TS.CREATE', HOSTILE], ['TS.CREATE', 'hostile:1d'],
    ['TS.CREATERULE', 'room', 'room:1m', 'AGGREGATION', 'avg', '60000'],
    ['TS.CREATERULE', 'room', 'room:1h', 'AGGREGATION', 'std.p', '3600000', '7000'],
    ['TS.CREATERULE', HOSTILE, 'hostile:1d', 'AGGREGATION', 'max', '86400000'],
    ['TS.ADD', 'room', '600000', '2'],
  );
});

const address = (parameters = {}, of = server) => `${of.address}#/compaction?${new URLSearchParams(parameters)}`;
const destinations = (page) => texts(page, '.compaction .table tbody td:nth-child(2)');
const row = (page, destination) => page.locator('.compaction .table tbody tr', { has: page.locator('td:nth-child(2)', { hasText: destination }) });
const cells = (page, destination) => row(page, destination).locator('td').allTextContents();

/** Opens the page with rules that `change` has changed. */
const changed = (change) => browser.openChanged(address({ refresh: 'off' }), '**/api/v1/status/rules?*', ({ rules }) => change(rules));

test('rules are listed with what they do, and lead to their series', async () => {
  const page = await browser.open(address());
  await becomes(() => destinations(page), ['hostile:1d', 'room:1m', 'room:1h'], page);
  assert.deepEqual(await cells(page, 'room:1m'), ['room', 'room:1m', 'avg', '1m', '0s', '0', '0', '1970-01-01', '\u2013']);
  assert.deepEqual((await cells(page, 'room:1h')).slice(2, 5), ['std.p', '1h', '7s']);
  assert.deepEqual(await cells(page, 'hostile:1d'), [HOSTILE, 'hostile:1d', 'max', '1d', '0s', '0', '0', '\u2013', '\u2013']);
  assert.equal(await page.locator('main img').count(), 0);
  const links = row(page, 'hostile:1d').getByRole('link');
  assert.deepEqual(await links.evaluateAll((found) => found.map((link) => new URLSearchParams(link.hash.split('?')[1]).get('key'))), [HOSTILE, 'hostile:1d']);
  await links.first().press('Enter');
  await page.waitForURL(/#\/series\?key=/);
});

test('a late sample is seen to be recomputed, without a reload', async () => {
  const page = await browser.open(address({ filter: 'room:1m', refresh: '2s' }));
  await becomes(async () => (await cells(page, 'room:1m'))[8], '\u2013', page);
  await server.redis(['TS.ADD', 'room', '61000', '5'], ['TS.RANGE', 'room:1m', '-', '+']);
  await page.waitForFunction(() => /^\d\d:\d\d:\d\d$/.test(document.querySelector('.compaction tbody td:nth-child(9)')?.textContent));
});

test('filter and order are in the address, and a link shows the same', async () => {
  const page = await browser.open(`${server.address}#/queries`);
  await page.locator('.queries-page').waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('o');
  await page.getByLabel('Filter').fill('ROOM st');
  await becomes(() => destinations(page), ['room:1h'], page);
  await page.getByLabel('Filter').fill('room');
  await becomes(() => texts(page, '.compaction .bar [role=status]'), ['2 of 3 rules'], page);
  await page.getByRole('button', { name: 'Bucket' }).press('Enter');
  await becomes(() => destinations(page), ['room:1h', 'room:1m'], page);
  assert.deepEqual(Object.fromEntries(parameters(page)), { filter: 'room', order: '-bucket' });
  const other = await browser.open(page.url());
  await becomes(() => destinations(other), ['room:1h', 'room:1m'], other);
  assert.equal(await other.getByLabel('Filter').inputValue(), 'room');
  await other.getByLabel('Filter').fill('no such');
  await other.getByRole('button', { name: 'Show all rules' }).press('Enter');
  await becomes(async () => (await destinations(other)).length, 3, other);
});

test('rules that are behind are found, and failed buckets are told with their spans', async () => {
  const page = await changed((rules) => {
    for (const rule of rules) {
      if (rule.destination === 'room:1m') Object.assign(rule, { failed_buckets: 2, failed: [{ first_ms: 60_000, last_ms: 119_999 }, { first_ms: 240_000, last_ms: 299_999 }] });
      if (rule.destination === 'room:1h') rule.dirty_buckets = 1234;
    }
  });
  await becomes(async () => (await destinations(page)).length, 3, page);
  await page.getByLabel('Only dirty or failed (2)').press('Space');
  await becomes(() => destinations(page), ['room:1m', 'room:1h'], page);
  assert.equal((await cells(page, 'room:1h'))[5], '1\u202f234');
  await row(page, 'room:1m').getByTitle('Show which').press('Enter');
  await becomes(() => texts(page, '.failed li'), ['1970-01-01 01:01:00 to 1970-01-01 01:01:59.999', '1970-01-01 01:04:00 to 1970-01-01 01:04:59.999'], page);
  assert.deepEqual(Object.fromEntries(parameters(page)), { refresh: 'off', only: 'behind', rule: 'room:1m' });
  await page.locator('.failed button:focus').waitFor();
  await page.keyboard.press('Escape');
  await becomes(() => page.locator('.failed').count(), 0, page);
  assert.deepEqual(Object.fromEntries(parameters(page)), { refresh: 'off', only: 'behind' });
});

test('what is null or missing breaks nothing', async () => {
  const page = await changed((rules) => {
    rules.splice(0, rules.length, { source: 'a', destination: 'b', bucket_ms: null, failed: null }, {}, null);
  });
  await becomes(() => texts(page, '.compaction .bar [role=status]'), ['3 of 3 rules'], page);
  assert.doesNotMatch(await page.locator('.compaction .table').innerText(), /NaN|undefined|null/);
});

test('no rules: the page tells how one is made', async () => {
  const empty = await Server.begin('--wal', 'off');
  try {
    const page = await browser.open(address({}, empty));
    await page.getByText('TS.CREATERULE room room:1m AGGREGATION avg 60000').waitFor();
    await empty.redis(...(await page.locator('.empty pre').textContent()).split('\n').map((line) => line.split(' ')));
    await page.getByRole('button', { name: 'Ask again' }).press('Enter');
    await becomes(() => destinations(page), ['room:1m'], page);
    await empty.kill();
    await page.getByRole('button', { name: 'Ask again' }).press('Enter');
    await page.locator('.notice.error', { hasText: 'the server does not answer' }).waitFor();
    assert.deepEqual(await destinations(page), ['room:1m']);
    await page.route('**/status/rules?*', (route) => route.fulfill({ status: 403, json: { errorType: 'forbidden', error: 'no' } }));
    await page.getByRole('button', { name: 'Ask again' }).press('Enter');
    await page.getByText('permission for the command TS.INFO').waitFor();
  } finally {
    await empty.end();
  }
});

test('thousands of rules are filtered and sorted, and only those in sight are drawn', async () => {
  const many = await Server.begin('--wal', 'off', '--ts-compaction-policy', 'avg:1M:0;max:1h:0');
  try {
    await many.write(Array.from({ length: 2500 }, (_, at) => `cpu,host=h${at} usage=1 1000`));
    const page = await browser.open(address({ refresh: 'off', order: '-destination' }, many));
    await becomes(() => texts(page, '.compaction .bar [role=status]'), ['5\u202f000 of 5\u202f000 rules'], page);
    assert.ok(await page.locator('.compaction tbody tr').count() < 100);
    assert.match((await destinations(page))[0], /h2499.*_MAX_/);
    await page.getByRole('region', { name: 'Compaction rules' }).press('End');
    await row(page, '"h0"}_AVG_60000').waitFor();
    await page.getByLabel('Filter').fill('h24 avg');
    await becomes(() => texts(page, '.compaction .bar [role=status]'), ['111 of 5\u202f000 rules'], page);
  } finally {
    await many.end();
  }
});
