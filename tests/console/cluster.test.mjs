// The Cluster page: who owns the log, who follows, how far behind each is, and what an operator is
// told. What a node of a cluster says is put into the answers of a server that is alone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, plainTexts, serving, START, texts, using } from './harness.mjs';

const HOSTILE = '<img src=x onerror=alert(1)>';

const browser = browsing();
const server = serving();

const member = (number, changes) => ({
  id: String(number).repeat(40), is_this: number === 1, address: `db-${number}:6379`, read_address: '', http_address: `db-${number}:8086`, version: '0.1.0',
  role: 'follower', since_ms: START + number * 1000, behind_ms: 400, caught_up: true, applied_group: 1200, heard_ms: number === 1 ? 0 : 700, users_differ: false, settings_differ: false,
  ...changes,
});

/** A follower of the second of three nodes. */
const cluster = (changes) => ({
  role: 'follower', since_ms: START + 1000, epoch: 70, owner: 'db-2:6379', behind_ms: 400, newest_group: 1234, unapplied_groups: 34, max_staleness_ms: 5000,
  takes_reads: true, takes_writes: false, users_differ: 0, settings_differ: 0,
  members: [member(1), member(2, { role: 'owner', behind_ms: 0, applied_group: 1234 }), member(3)],
  ...changes,
});

/** Makes the server a node for one page; `state` is asked for what it says. */
async function open(state, { address = `${server.address}#/cluster?refresh=1s`, ...options } = {}) {
  const context = await browser.chromium.newContext({ viewport: { width: 1200, height: 900 }, timezoneId: 'Europe/Berlin', ...options });
  const change = (path, changed) => context.route(path, async (route) => {
    const response = await route.fetch().catch(() => null);
    // The server is away.
    if (!response) return route.abort().catch(() => {});
    return route.fulfill({ response, ...await changed(response) });
  });
  await change('**/-/healthy', (response) => ({ headers: { ...response.headers(), 'latewood-role': state().role } }));
  await change('**/api/v1/status/server', async (response) => {
    const answer = await response.json();
    answer.data.cluster = state();
    return { json: answer };
  });
  return browser.openIn(context, address);
}

const word = (page) => page.locator('.state .word').innerText().then((text) => text.split('\n').at(-1));
const rows = async (page) => (await page.locator('.table tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent))));
const matter = (page, text) => page.locator('.matters li', { hasText: text });

test('who owns, who follows, how far behind and since when', async () => {
  const page = await open(() => cluster());
  await becomes(() => word(page), 'Follower', page);
  assert.deepEqual((await rows(page)).map((row) => row.slice(0, 6).map((text) => text.replace(/\u202f/g, ' '))), [
    ['db-1:6379 (this)', 'follower', '2026-01-01 01:00:01', '400 ms', '34', '\u2013'],
    ['db-2:6379', 'owner', '2026-01-01 01:00:02', '\u2013', '0', '700 ms ago'],
    ['db-3:6379', 'follower', '2026-01-01 01:00:03', '400 ms', '34', '700 ms ago'],
  ]);
  await page.getByText('db-2:6379 takes writes.').waitFor();
  await page.getByText('Nothing needs attention.').waitFor();
  const facts = await plainTexts(page, '.this dd');
  assert.deepEqual(facts, ['follower, since 2026-01-01 01:00:01', 'db-2:6379', '70', '400 ms; at most 5.00 s to answer reads', 'reads']);
  // The others' consoles.
  const links = await page.locator('.table a').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
  assert.deepEqual(links, ['http://db-2:8086/#/cluster', 'http://db-3:8086/#/cluster']);
});

test('a take-over is seen, and the time without an owner says what to do', async () => {
  let state = cluster();
  const page = await open(() => state);
  await becomes(() => word(page), 'Follower', page);
  state = cluster({ owner: null, members: [member(1), member(2, { heard_ms: 7000 }), member(3)] });
  await becomes(() => word(page), 'No owner', page);
  await page.locator('.state.bad').waitFor();
  await matter(page, 'none takes writes').waitFor();
  await matter(page, 'check that the brokers of Kafka answer').waitFor();
  await matter(page, 'db-2:6379 was heard 7.00 s ago').waitFor();
  state = cluster({
    role: 'owner', owner: 'db-1:6379', behind_ms: 0, takes_writes: true, since_ms: START + 60_000, unapplied_groups: 0,
    members: [member(1, { role: 'owner', behind_ms: 0, since_ms: START + 60_000, applied_group: 1234 }), member(3)],
  });
  await becomes(() => word(page), 'Owner', page);
  await page.getByText('This node takes writes; one other node follows.').waitFor();
  assert.deepEqual((await rows(page))[0].slice(0, 3), ['db-1:6379 (this)', 'owner', '2026-01-01 01:01:00']);
});

test('a node that is stale, alone or loading says so', async () => {
  let state = cluster({ takes_reads: false, behind_ms: 12_340, members: [member(1, { behind_ms: 12_340 })] });
  const page = await open(() => state);
  await becomes(() => word(page), 'Stale', page);
  await matter(page, 'This node answers no reads: it had all of the log 12.34 s ago, and may be 5.00 s behind').waitFor();
  await matter(page, 'No other node was heard').waitFor();
  assert.equal(await page.locator('.this dd.bad').count(), 2);
  state = cluster({ role: 'loading', takes_reads: false, behind_ms: null, owner: null, members: [member(1, { role: 'loading', behind_ms: null })] });
  await becomes(() => word(page), 'Loading', page);
  await page.getByText(/^1.200 of 1.234 groups of the log are applied/).waitFor();
});

test('followers that are behind, and what is not alike, need attention', async () => {
  const page = await open(() => cluster({
    members: [
      member(1), member(2, { role: 'owner', users_differ: true }), member(3, { behind_ms: 9000, caught_up: false, users_differ: true, settings_differ: true }),
      member(4, { behind_ms: null, caught_up: false, version: '0.2.0' }), member(5, { behind_ms: 6000, settings_differ: true, settings_differing: ['reads', 'series'] }),
    ],
    address_shared_with: '9'.repeat(40),
  }));
  await matter(page, 'Another living process (99999999) tells others that it is reached at db-1:6379').waitFor();
  await matter(page, 'db-3:6379 had all of the log 9.00 s ago: it answers no reads').waitFor();
  await matter(page, 'db-4:6379 has not had all of the log yet').waitFor();
  await matter(page, 'db-2:6379, db-3:6379 were started with other users than this node').waitFor();
  await matter(page, 'db-3:6379, db-5:6379 were started with other settings than this node').waitFor();
  await matter(page, 'different versions: 0.1.0 (4), 0.2.0 (1)').waitFor();
  assert.equal(await matter(page, 'db-5:6379 had').count(), 0, 'it said last that it is caught up');
  assert.deepEqual((await rows(page)).map((row) => row.at(-1)), ['', 'users', 'users, settings', '', 'reads, series']);
});

test('the page is in the navigation of a node, and of no server that is alone', async () => {
  const page = await open(() => cluster(), { address: `${server.address}#/queries` });
  await page.getByRole('link', { name: 'Cluster' }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('n');
  await page.waitForURL(/#\/cluster$/);
  await becomes(() => word(page), 'Follower', page);
  const alone = await browser.open(`${server.address}#/queries`);
  await alone.getByRole('link', { name: 'Server' }).waitFor();
  await alone.evaluate(() => fetch('-/healthy'));
  assert.equal(await alone.getByRole('link', { name: 'Cluster' }).count(), 0);
  await alone.keyboard.press('g');
  await alone.keyboard.press('n');
  assert.match(alone.url(), /#\/queries$/);
  await alone.goto(`${server.address}#/cluster`);
  await alone.getByRole('heading', { name: 'Not part of a cluster' }).waitFor();
});

test('a node that is away is said, and what it said last stays', () =>
  using(['--wal', 'off'], async (other) => {
    const page = await open(() => cluster(), { address: `${other.address}#/cluster?refresh=1s` });
    await becomes(() => word(page), 'Follower', page);
    await other.kill();
    await becomes(() => word(page), 'No answer', page);
    await page.getByText('look at the console of another node').waitFor();
    assert.equal((await rows(page)).length, 3);
  }));

test('what is null, missing or hostile breaks nothing', async () => {
  let state = {};
  const page = await open(() => state, { viewport: { width: 400, height: 800 } });
  await page.locator('.state .word').waitFor();
  for (const [next, shown] of [
    [{ role: null, members: [null, {}] }, 'No owner'],
    [cluster({ members: [member(1), member(2, { role: 'owner', address: HOSTILE, http_address: 'javascript:alert(1)', version: HOSTILE })], owner: HOSTILE }), 'Follower'],
  ]) {
    state = next;
    await becomes(() => word(page), shown, page);
    assert.doesNotMatch(await page.locator('main').innerText(), /NaN|undefined|null|\[object/);
  }
  await page.locator('.table td', { hasText: HOSTILE }).first().waitFor();
  assert.equal(await page.locator('img, .table a').count(), 0);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  assert.ok((await texts(page, '.sideways')).length > 0);
});

test('a user without permission is told which one is missing', async () => {
  const page = await browser.open(`${server.address}#/queries`);
  await page.route('**/api/v1/status/server', (route) =>
    route.fulfill({ status: 403, json: { status: 'error', errorType: 'forbidden', error: 'no permission' } }));
  await page.goto(`${server.address}#/cluster`);
  await page.getByText('permission for the command INFO').waitFor();
});
