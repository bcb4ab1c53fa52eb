// What holds on every page: logins, a server that is away, many and hostile series, the theme.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, listed, query, texts, using } from './harness.mjs';

const browser = browsing();

const legend = (page) => texts(page, '.legend .name');

test('a password is asked for, a wrong one is refused, and a right one is forgotten with the page', () =>
  using(['--wal', 'off', '--requirepass', 'sesame'], async (server) => {
    await server.write([`up v=1 ${Date.now()}`], { Authorization: 'Bearer sesame' });
    const page = await browser.open(query(server, { q: 'up_v' }));
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Password').fill('wrong');
    await page.keyboard.press('Enter');
    await dialog.getByText('wrong user name or password').waitFor();
    await dialog.getByLabel('Password').fill('sesame');
    await page.keyboard.press('Enter');
    await becomes(() => legend(page), ['up_v'], page);
    assert.equal(await dialog.count(), 0);
    assert.ok(!JSON.stringify(await page.context().storageState()).includes('sesame'));
    await page.reload();
    await dialog.getByLabel('Password').waitFor();
  }));

test('a server that dies during refreshes and comes back', () =>
  using([], async (server) => {
    await server.write([`up v=1 ${Date.now() - 2000}`]);
    const page = await browser.open(query(server, { q: 'up_v', refresh: '1s' }));
    await becomes(() => legend(page), ['up_v'], page);
    await server.write([`up,more=1 v=1 ${Date.now() - 2000}`]);
    await becomes(async () => (await legend(page)).length, 2, page);
    await server.kill();
    await page.locator('.banner', { hasText: 'The server does not answer' }).waitFor();
    await page.locator('.said .error', { hasText: 'network' }).waitFor();
    assert.equal((await legend(page)).length > 0, true, 'the last answer stays');
    await server.start();
    await server.write([`up,back=1 v=1 ${Date.now() - 2000}`]);
    await page.waitForFunction(() => [...document.querySelectorAll('.legend .name')].some((name) => name.textContent.includes('back')));
    await becomes(() => page.locator('.banner', { hasText: 'The server does not answer' }).count(), 0, page);
    assert.equal(await page.locator('.said .error').count(), 0);
  }));

test('10,000 series are one table, of which the rows in sight are drawn', () =>
  using(['--wal', 'off'], async (server) => {
    const now = Date.now();
    await server.write(Array.from({ length: 10_000 }, (_, at) => `many,id=${at} v=${at} ${now}`));
    const page = await browser.open(query(server, { q: 'many_v', from: String(now - 60_000), to: String(now + 1000), view: 'table' }));
    await page.getByText(/10.000 rows/).waitFor();
    assert.equal(await page.locator('table').getAttribute('aria-rowcount'), '10001');
    assert.ok(await page.locator('.table tbody tr').count() < 100);
    await page.getByRole('button', { name: 'Value' }).click();
    await becomes(() => page.locator('.table tbody td.number').first().textContent(), '9999', page);
    await page.locator('.table').focus();
    await page.keyboard.press('End');
    await becomes(() => page.locator('.table tbody td.number').last().textContent(), '0', page);
    await page.getByRole('tab', { name: 'Graph' }).click();
    await page.getByText(/The first 500 of 10.000 series are drawn/).waitFor();
    assert.equal((await legend(page)).length, 500);
  }));

test('names that look like HTML are texts', () =>
  using(['--wal', 'off'], async (server) => {
    const hostile = '<img src=x onerror="window.hacked=1">';
    const escaped = hostile.replace(/[ ,=]/g, '\\$&');
    await server.write([`m,host=${escaped} v=1 ${Date.now() - 1000}`, `m,<b>x</b>=1 v=1 ${Date.now() - 1000}`]);
    const page = await browser.open(query(server, { q: 'm_v' }));
    await page.locator('.legend .name', { hasText: 'onerror' }).waitFor();
    await page.getByRole('tab', { name: 'Table' }).click();
    await page.locator('.table td', { hasText: hostile }).first().waitFor();
    assert.deepEqual((await texts(page, '.table th')).map((text) => text.trim()), ['metric', '<b>x</b>', 'host', 'Value']);
    await page.getByRole('tab', { name: 'JSON' }).click();
    await page.locator('.json', { hasText: 'onerror' }).waitFor();
    await page.getByLabel('Query A').locator('.cm-content').click();
    await page.keyboard.press('End');
    await page.keyboard.type('{host="');
    await listed(page, 'onerror').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.insertText(`${hostile})`);
    await page.keyboard.press('Enter');
    await page.locator('.said .error').waitFor();
    assert.equal(await page.locator('img, b').count(), 0);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
  }));

test('dark and light follow the system, or the switch, which is kept', () =>
  using(['--wal', 'off'], async (server) => {
    const page = await browser.open(server.address, { colorScheme: 'dark' });
    const ground = () => page.evaluate(() => Number(/\d+/.exec(getComputedStyle(document.body).backgroundColor)[0]));
    await page.getByRole('button', { name: 'Theme: system' }).waitFor();
    assert.ok(await ground() < 60);
    await page.emulateMedia({ colorScheme: 'light' });
    await page.waitForFunction(() => document.documentElement.dataset.theme === 'light');
    assert.ok(await ground() > 200);
    await page.getByRole('button', { name: 'Theme: system' }).click();
    await page.getByRole('button', { name: 'Theme: light' }).click();
    await page.getByRole('button', { name: 'Theme: dark' }).waitFor();
    assert.ok(await ground() < 60);
    await page.reload();
    await page.getByRole('button', { name: 'Theme: dark' }).waitFor();
    assert.ok(await ground() < 60);
  }));

test('a narrow screen has no sideways scrolling', () =>
  using(['--wal', 'off'], async (server) => {
    await server.write([`up v=1 ${Date.now() - 1000}`]);
    const page = await browser.open(query(server, { q: 'up_v' }), { viewport: { width: 360, height: 700 } });
    await page.locator('.legend .name').first().waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  }));

test('tabs are chosen with the arrow keys, and name what they show', () =>
  using(['--wal', 'off'], async (server) => {
    await server.write([`up v=1 ${Date.now() - 1000}`]);
    const page = await browser.open(query(server, { q: 'up_v' }));
    const chosen = () => page.evaluate(() => document.activeElement?.getAttribute('aria-selected') && document.activeElement.textContent);
    const shown = () => page.getByRole('tabpanel').evaluate((panel) => document.getElementById(panel.getAttribute('aria-labelledby'))?.textContent);
    await page.getByRole('tab', { name: 'Graph' }).focus();
    for (const [key, name] of [['ArrowRight', 'Table'], ['End', 'JSON'], ['ArrowRight', 'Graph'], ['ArrowLeft', 'JSON'], ['Home', 'Graph']]) {
      await page.keyboard.press(key);
      assert.equal(await chosen(), name);
      assert.equal(await shown(), name);
    }
    await page.keyboard.press('Tab');
    assert.equal(await chosen(), null, 'one tab of a row is reached with Tab');
    for (const [name, rows] of [['series', 1], ['queries', 1], ['late', 2], ['rules', 1]]) {
      await page.evaluate((to) => { location.hash = to; }, `#/${name}`);
      await becomes(() => page.getByRole('tabpanel').count(), rows, page);
      assert.equal(await page.locator('[role=tab][tabindex="0"][aria-controls]').count(), rows);
    }
  }));

test('a second tab keeps what the first one saved, and nonsense that is kept is none', () =>
  using(['--wal', 'off'], async (server) => {
    const context = await browser.chromium.newContext();
    await context.addInitScript(() => { if (!localStorage.getItem('latewood.history')) localStorage.setItem('latewood.history', '{"text":7}'); });
    const address = query(server, { q: 'vector(1)', range: '5m' });
    const tabs = [await browser.openIn(context, address), await browser.openIn(context, address)];
    const save = async (page, name) => {
      await page.getByRole('button', { name: 'Saved' }).click();
      await page.getByPlaceholder('Name for what is shown').fill(name);
      await page.keyboard.press('Enter');
      await page.locator('.panel .list button', { hasText: name }).waitFor();
    };
    await save(tabs[0], 'first');
    await save(tabs[1], 'second');
    const names = () => tabs[1].evaluate(() => JSON.parse(localStorage.getItem('latewood.saved')).map(({ name }) => name));
    await becomes(names, ['first', 'second'], tabs[1]);
    await becomes(async () => (await texts(tabs[0], '.panel .list button')).filter(Boolean), ['first', 'second'], tabs[0]);
    await tabs[1].getByRole('button', { name: 'Run', exact: true }).click();
    await tabs[1].getByRole('button', { name: 'History' }).click();
    await becomes(() => texts(tabs[1], '.panel code'), ['vector(1)'], tabs[1]);
  }));

test('an address of no page says so', () =>
  using(['--wal', 'off'], async (server) => {
    const page = await browser.open(`${server.address}#/nopage?q=up`);
    await page.getByRole('heading', { name: 'No such page' }).waitFor();
    await page.getByRole('link', { name: 'Query' }).click();
    await page.getByText('No series yet').waitFor();
  }));

test('g waits a second for its letter', () =>
  using(['--wal', 'off'], async (server) => {
    const page = await browser.open(server.address);
    await page.getByText('No series yet').waitFor();
    await page.clock.install();
    await page.keyboard.press('g');
    await page.clock.runFor(1000);
    await page.keyboard.press('l');
    assert.equal(await page.evaluate(() => location.hash), '');
    await page.clock.runFor(1000);
    await page.keyboard.type('histogram');
    assert.equal(await page.evaluate(() => location.hash), '', 'in the middle of a word');
    await page.clock.runFor(1000);
    await page.keyboard.press('g');
    await page.keyboard.press('l');
    assert.equal(await page.evaluate(() => location.hash), '#/late');
  }));
