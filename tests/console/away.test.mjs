// A server that is away, or still loads its data: what it said last stays, nothing claims that all is
// well, and pages go on by themselves once it answers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, query, serving, START, using } from './harness.mjs';

const SPAN = { from: String(START), to: String(START + 600_000) };
const LINES = [`room temp=1 ${START}`, `room temp=2 ${START + 600_000}`];

const browser = browsing();
const server = serving(() => server.write(LINES));

const banner = (page) => page.locator('.banner');

test('the Server page does not say that a server that is away is ready', () =>
  using(['--wal', 'off'], async (other) => {
    const page = await browser.openChanged(`${other.address}#/server?refresh=1s`, '**/api/v1/status/server', (data) => { data.disk.free_bytes = data.disk.total_bytes; });
    await page.getByText('Nothing needs attention.').waitFor();
    await other.kill();
    await page.locator('.state.bad .word', { hasText: 'No answer' }).waitFor();
    await page.getByText(/^It answered last at 20/).waitFor();
    assert.equal(await page.getByText('Nothing needs attention.').count(), 0);
    await banner(page).waitFor();
    await other.start();
    await page.locator('.state.good .word', { hasText: 'Ready' }).waitFor();
    await becomes(() => banner(page).count(), 0, page);
  }));

test('the banner goes when the server is back, also on a page that asks for nothing', () =>
  using(['--wal', 'off'], async (other) => {
    const page = await browser.open(`${other.address}#/query`);
    await page.getByText('No series yet').waitFor();
    await other.kill();
    await page.getByLabel('Query A').locator('.cm-content').click();
    const checked = page.waitForEvent('requestfailed', (request) => request.url().includes('format_query'));
    await page.keyboard.type('up');
    await checked;
    await banner(page).waitFor();
    await other.start();
    await becomes(() => banner(page).count(), 0, page);
  }));

test('pages that refresh by hand only ask again once the server is back', () =>
  using([], async (other) => {
    await other.write(LINES);
    for (const [name, parameters, shown] of [
      ['query', { ...SPAN, q: 'room_temp' }, '.legend .name'],
      ['explain', { ...SPAN, q: 'room_temp' }, '.tree .node'],
      ['late', { refresh: 'off' }, '.figure-list dd'],
      ['cardinality', {}, '.lists .table td'],
      ['rules', { refresh: 'off' }, '.rules .notice.empty'],
      ['alerts', { refresh: 'off' }, '.alerts .notice.empty'],
      ['compaction', { refresh: 'off' }, '.compaction .notice.empty'],
    ]) {
      const page = await browser.open(`${other.address}#/${name}?${new URLSearchParams(parameters)}`);
      await page.locator(shown).first().waitFor();
      await other.kill();
      await page.getByRole('button', { name: /^(Run|Explain|Refresh|Count again|Ask again)$/ }).first().click();
      await banner(page).waitFor();
      assert.ok(await page.locator(shown).count() > 0, `${name}: the last answer stays`);
      await other.start();
      await becomes(() => page.locator('.error[role=alert]').count(), 0, page);
      await becomes(() => banner(page).count(), 0, page);
      await page.context().close();
    }
  }));

test('the last answer stays while the server loads, until there is the next one', async () => {
  const loading = { status: 503, json: { status: 'error', errorType: 'unavailable', error: 'the database is loading' } };
  for (const [name, parameters, shown, button] of [
    ['query', { ...SPAN, q: 'room_temp' }, '.legend .name', 'Run'],
    ['explain', { ...SPAN, q: 'room_temp' }, '.tree .node', 'Explain'],
    ['late', { refresh: 'off' }, '.figure-list dd', 'Refresh'],
    ['cardinality', {}, '.lists .table td', 'Count again'],
    ['rules', { refresh: 'off' }, '.rules .notice.empty', 'Ask again'],
    ['alerts', { refresh: 'off' }, '.alerts .notice.empty', 'Ask again'],
    ['compaction', { refresh: 'off' }, '.compaction .notice.empty', 'Ask again'],
    ['series', { key: 'room_temp', ...SPAN }, '.samples td', 'Refresh'],
  ]) {
    const page = await browser.open(`${server.address}#/${name}?${new URLSearchParams(parameters)}`);
    await page.locator(shown).first().waitFor();
    await page.route('**/api/v1/**', (route) => route.fulfill(loading));
    await page.getByRole('button', { name: button, exact: true }).first().click();
    await page.locator('.error[role=alert]', { hasText: 'the database is loading' }).first().waitFor();
    assert.ok(await page.locator(shown).count() > 0, `${name}: the last answer stays`);
    await page.unroute('**/api/v1/**');
    await becomes(() => page.locator('.error[role=alert]').count(), 0, page);
    await page.locator(shown).first().waitFor();
    await page.context().close();
  }
});
