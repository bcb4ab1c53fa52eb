// The Server page: what somebody on call sees of a server.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { becomes, Browser, Server, texts } from './harness.mjs';

const HOSTILE = '<img src=x onerror="window.hacked=1">:1m:0';

let browser;

before(async () => { browser = await Browser.begin(); });
after(() => browser?.end());
afterEach(() => browser.check());

async function using(options, act) {
  const server = await Server.begin(...options);
  try {
    await act(server);
  } finally {
    await server.end();
  }
}

/** The value beside a name, in the card with this title. */
const fact = (page, title, name) => page.locator('.subject', { has: page.getByRole('heading', { name: title, exact: true }) })
  .locator('dl div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).locator('dd').textContent();

/** The rate of a protocol as it is shown. */
const sent = (page, protocol) => page.locator('.small', { hasText: 'Samples by protocol' }).locator('.keys li', { hasText: protocol }).locator('b').textContent();

test('state, settings and what was written are seen, and go on by themselves', () =>
  using(['--memory', '256mb'], async (server) => {
    await server.write(['m,host=a v=1 1000', 'm,host=b v=1 1000']);
    const page = await browser.open(`${server.address}#/server`);
    await page.locator('.word', { hasText: 'Ready' }).waitFor();
    assert.equal(await fact(page, 'Samples since the start', 'series'), '2');
    assert.equal(await fact(page, 'Samples since the start', 'in order'), '2');
    assert.match(await fact(page, 'Memory', 'used'), /of 256\.0 MiB \(\d+%\)/);
    assert.ok((await texts(page, '.table tbody tr')).some((row) => row.startsWith('memory268435456')));
    await server.write(['m,host=a v=2 2000']);
    await becomes(() => fact(page, 'Samples since the start', 'in order'), '3', page);
    await server.write(Array.from({ length: 1000 }, (_, at) => `m,host=a v=1 ${3000 + at}`));
    await page.waitForFunction(() => [...document.querySelectorAll('.small .keys li')].some((one) => /^influx\d\d+.*\/s$/.test(one.textContent)));
    assert.equal(await sent(page, 'redis'), '0/s');
  }));

test('a limit that was met is said at the top', () =>
  using(['--max-series', '1'], async (server) => {
    await server.write(['m v=1 1000']);
    await fetch(`${server.address}write?precision=ms`, { method: 'POST', body: 'other v=1 1000' });
    const page = await browser.open(`${server.address}#/server?refresh=off`);
    await page.locator('.matters', { hasText: 'The limit of series refused something' }).waitFor();
    assert.match(await fact(page, 'Limits met since the start', 'series'), /^1, last /);
  }));

test('a server that is away is said, what it said last stays, and a new run begins anew', () =>
  using([], async (server) => {
    await server.write(['m v=1 1000']);
    const page = await browser.open(`${server.address}#/server?refresh=1s`);
    await becomes(() => fact(page, 'Samples since the start', 'in order'), '1', page);
    await server.kill();
    await page.locator('.notice.error', { hasText: 'the server does not answer' }).waitFor();
    assert.equal(await fact(page, 'Samples since the start', 'series'), '1');
    await server.start();
    await becomes(() => page.locator('.notice.error').count(), 0, page);
    await becomes(() => fact(page, 'Samples since the start', 'in order'), '0', page);
  }));

test('settings that look like HTML are texts, and a narrow screen has no sideways scrolling', () =>
  using(['--wal', 'off'], async (server) => {
    const page = await browser.open('about:blank', { viewport: { width: 400, height: 800 } });
    await page.route('**/api/v1/status/server', async (route) => {
      const answer = await (await route.fetch()).json();
      answer.data.settings.push({ name: 'ts-compaction-policy', value: HOSTILE, default: '' });
      answer.data.state.writes_stopped = HOSTILE;
      await route.fulfill({ json: answer });
    });
    await page.goto(`${server.address}#/server`);
    await page.locator('.word', { hasText: 'Writes stopped' }).waitFor();
    await page.locator('.matters', { hasText: HOSTILE }).waitFor();
    await page.locator('.table td', { hasText: HOSTILE }).waitFor();
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  }));
