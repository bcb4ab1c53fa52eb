// The Server page: what somebody on call sees of a server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, texts, using } from './harness.mjs';

const HOSTILE = '<img src=x onerror=alert(1)>';

const browser = browsing();

/** The value beside a name, in the card with this title. */
const fact = (page, title, name) => page.locator('.subject', { has: page.getByRole('heading', { name: title, exact: true }) })
  .locator('dl div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).locator('dd').textContent();

/** Figures of a chart as they are shown, by name. */
const figures = async (page, chart) => Object.fromEntries(await page.locator('.small', { hasText: chart }).locator('.keys li')
  .evaluateAll((items) => items.map((item) => [item.children[1].textContent, item.children[2].textContent])));

/** Opens the page with answers that `change` has changed; `change` may return others. */
const changed = (server, change, options) => browser.openChanged(`${server.address}#/server?refresh=1s`, '**/api/v1/status/server', change, options);

test('state, settings and what was written are seen, and go on by themselves', () =>
  using(['--memory', '256mb'], async (server) => {
    await server.write(['m,host=a v=1 1000', 'm,host=b v=1 1000']);
    // The disk of this machine may be full.
    const page = await changed(server, (data) => { data.disk.free_bytes = data.disk.total_bytes; });
    await page.locator('.word', { hasText: 'Ready' }).waitFor();
    await page.getByText('Nothing needs attention.').waitFor();
    assert.equal(await fact(page, 'Samples since the start', 'series'), '2');
    assert.equal(await fact(page, 'Samples since the start', 'in order'), '2');
    assert.match(await fact(page, 'Memory', 'used'), /of 256\.0 MiB \(\d+%\)/);
    assert.equal(await fact(page, 'Log', 'durability'), 'interval, 1\u202f000 ms');
    assert.equal(await fact(page, 'Backup', 'last'), 'none since the start');
    assert.ok((await texts(page, '.table tbody tr')).some((row) => row.startsWith('memory268435456')));
    await server.write(['m,host=a v=2 2000']);
    await becomes(() => fact(page, 'Samples since the start', 'in order'), '3', page);
    await server.write(Array.from({ length: 1000 }, (_, at) => `m,host=a v=1 ${3000 + at}`));
    await page.waitForFunction(() => [...document.querySelectorAll('.small .keys li')].some((one) => /^influx[1-9].*\/s$/.test(one.textContent)));
    assert.equal((await figures(page, 'Samples by protocol')).redis, '0/s');
  }));

test('a log in Kafka and its checkpoints are seen, and a checkpoint that failed needs attention', () =>
  using([], async (server) => {
    const remote = {
      epoch: 7, queued_bytes: 2048, log_bytes: 1 << 20, checkpoints: 3, checkpoints_failed: 1, checkpoint_last_error: HOSTILE,
      checkpoint_last_ms: 250, checkpoint_time_ms: Date.UTC(2024, 0, 2, 3, 4, 5), checkpoint_files: 4, checkpoint_bytes: 5 << 20,
    };
    const page = await changed(server, (data) => { data.remote = remote; });
    await page.getByText(`The last checkpoint failed: ${HOSTILE}`).waitFor();
    assert.equal(await fact(page, 'Log in Kafka', 'waits for Kafka'), '2.0 KiB');
    assert.equal(await fact(page, 'Log in Kafka', 'checkpoints, failed'), '3, 1');
    assert.match(await fact(page, 'Log in Kafka', 'newest'), /^2024-01-02 .*, 5\.0 MiB$/);
    assert.equal(await page.locator('img').count(), 0);
  }));

test('the keys lead to it, and a link shows the same to others', () =>
  using(['--wal', 'off'], async (server) => {
    const page = await browser.open(`${server.address}#/queries`);
    await page.locator('.queries-page').waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('v');
    await page.locator('.word', { hasText: 'Ready' }).waitFor();
    await page.getByLabel('Refresh').focus();
    await page.keyboard.press('o');
    await page.waitForURL(/#\/server\?refresh=off$/);
    const other = await browser.open(page.url());
    await other.getByRole('button', { name: 'Look again' }).waitFor();
    assert.equal(await other.getByLabel('Refresh').inputValue(), 'off');
    await server.write(['m v=1 1000']);
    await other.getByRole('button', { name: 'Look again' }).press('Enter');
    await becomes(() => fact(other, 'Samples since the start', 'series'), '1', other);
    assert.equal(await fact(page, 'Samples since the start', 'series'), '0');
  }));

test('a limit that was met is said at the top', () =>
  using(['--max-series', '1'], async (server) => {
    await server.write(['m v=1 1000']);
    await fetch(`${server.address}write?precision=ms`, { method: 'POST', body: 'other v=1 1000' });
    const page = await browser.open(`${server.address}#/server?refresh=off`);
    await page.locator('.matters', { hasText: 'The limit of series refused something' }).waitFor();
    assert.match(await fact(page, 'Limits met since the start', 'series'), /^1, last /);
    assert.equal(await fact(page, 'Refused since the start', 'influx: limit'), '1');
    await page.getByRole('link', { name: 'Show cardinality' }).press('Enter');
    await page.waitForURL(/#\/cardinality$/);
  }));

test('a server that is away is said, what it said last stays, and a new run begins anew', () =>
  using([], async (server) => {
    await server.write(['m v=1 1000', 'm v=1 2000']);
    const page = await browser.open(`${server.address}#/server?refresh=1s`);
    await becomes(() => fact(page, 'Samples since the start', 'in order'), '2', page);
    await server.kill();
    await page.locator('.notice.error', { hasText: 'the server does not answer' }).waitFor();
    assert.equal(await fact(page, 'Samples since the start', 'series'), '1');
    // Whatever a figure becomes, it is never a rate below zero.
    await page.evaluate(() => {
      window.negative = [];
      const look = () => { for (const one of document.querySelectorAll('.smalls b')) if (/^[-\u2212]\d/.test(one.textContent)) window.negative.push(one.textContent); };
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    await server.start();
    await becomes(() => page.locator('.notice.error').count(), 0, page);
    await becomes(() => fact(page, 'Samples since the start', 'in order'), '0', page);
    await page.locator('.matters', { hasText: 'the stop before was not clean' }).waitFor();
    assert.equal(await fact(page, 'Recovery at the last start', 'replayed'), '2 samples, 1 series');
    await becomes(async () => (await figures(page, 'Samples by protocol')).influx, '0/s', page);
    assert.deepEqual(await page.evaluate(() => window.negative), []);
  }));

test('while the server loads, the page says how far it is', () =>
  using(['--wal', 'off'], async (server) => {
    const page = await changed(server, (data) => {
      data.state.loading = { bytes_done: 2 ** 20, bytes_total: 2 ** 22, percent: 25, eta_seconds: 7 };
      data.state.ready = false;
    });
    await page.locator('.word', { hasText: 'Loading: 25%' }).waitFor();
    const box = await page.getByLabel('State', { exact: true }).boundingBox();
    for (const text of [page.locator('.word'), page.getByText('1.0 MiB of 4.0 MiB are loaded; 7 s to go.')]) {
      const { x, y, width, height } = await text.boundingBox();
      assert.ok(x > box.x && x + width < box.x + box.width, 'beside the box');
      assert.ok(y > box.y && y + height < box.y + box.height, `below the box, which is ${box.height} px high`);
    }
    assert.ok((await page.locator('.smalls').boundingBox()).y >= box.y + box.height, 'the box lies over the charts');
  }));

test('small charts leave zoom keys and dragging alone', () =>
  using(['--wal', 'off'], async (server) => {
    const page = await browser.open(`${server.address}#/server?refresh=off`);
    const chart = page.locator('.small .chart').first();
    await chart.focus();
    await page.evaluate(() => addEventListener('keydown', ({ defaultPrevented }) => { window.isTaken = defaultPrevented; }));
    await page.keyboard.press('+');
    assert.equal(await page.evaluate(() => window.isTaken), false);
    const box = await chart.locator('.u-over').boundingBox();
    await page.mouse.move(box.x + 20, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + 80, box.y + 20, { steps: 3 });
    assert.equal(await chart.locator('.u-select').evaluate((one) => one.offsetWidth), 0);
    await page.mouse.up();
  }));

test('counters that begin anew within a run give no rate', () =>
  using(['--wal', 'off'], async (server) => {
    let sent = 5000;
    const page = await changed(server, (data) => { data.samples.sent_by_redis = sent; });
    await becomes(async () => (await figures(page, 'Samples by protocol')).redis, '0/s', page);
    sent = 10;
    await becomes(async () => (await figures(page, 'Samples by protocol')).redis, '-', page);
    await becomes(async () => (await figures(page, 'Samples by protocol')).redis, '0/s', page);
  }));

/** Every value that is not an object becomes null, or is taken away. */
function emptied(value, isKept) {
  if (Array.isArray(value)) return value.map((one) => emptied(one, isKept));
  if (typeof value !== 'object' || value === null) return isKept ? null : undefined;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, emptied(one, isKept)]));
}

test('what is null or missing breaks nothing', () =>
  using(['--wal', 'off'], async (server) => {
    const answers = [
      (data) => emptied(data, true),
      (data) => emptied(data, false),
      (data) => Object.fromEntries(Object.keys(data).map((name) => [name, null])),
      () => ({}),
      (data) => data,
    ];
    let turn = 0;
    const page = await changed(server, (data) => answers[turn](data));
    for (; turn < answers.length - 1; turn++) {
      const next = page.waitForResponse('**/status/server');
      await next;
      await page.locator('.word', { hasText: 'Not ready' }).waitFor();
      assert.equal(await fact(page, 'Samples since the start', 'series'), '\u2013');
      assert.doesNotMatch(await page.locator('main').innerText(), /NaN|undefined|null|\[object/);
    }
    await page.locator('.word', { hasText: /^.Ready$/ }).waitFor();
    await becomes(() => fact(page, 'Samples since the start', 'series'), '0', page);
  }));

test('a user without permission is told which one is missing', () =>
  using(['--wal', 'off'], async (server) => {
    const page = await browser.open(`${server.address}#/queries`);
    await page.route('**/api/v1/status/server', (route) =>
      route.fulfill({ status: 403, json: { status: 'error', errorType: 'forbidden', error: 'no permission' } }));
    await page.goto(`${server.address}#/server`);
    await page.getByText('permission for the command INFO').waitFor();
    assert.equal(await page.locator('.subject').count(), 0);
  }));

test('settings that look like HTML are texts, and a narrow screen has no sideways scrolling', () =>
  using(['--wal', 'off'], async (server) => {
    const page = await changed(server, (data) => {
      data.settings.push({ name: 'ts-compaction-policy', value: HOSTILE, default: '' });
      data.state.writes_stopped = HOSTILE;
      data.errors.by_code[HOSTILE] = 1;
    }, { viewport: { width: 400, height: 800 } });
    await page.locator('.word', { hasText: 'Writes stopped' }).waitFor();
    await page.locator('.matters', { hasText: HOSTILE }).waitFor();
    await page.locator('.table td', { hasText: HOSTILE }).waitFor();
    assert.equal(await fact(page, 'Refused since the start', `redis: ${HOSTILE.replace(/[()]/g, '\\$&')}`), '1');
    assert.equal(await page.locator('img').count(), 0);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  }));
