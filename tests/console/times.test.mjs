// Times: milliseconds in either zone, clocks that change, keys of charts.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { becomes, Browser, query, Server, texts } from './harness.mjs';

// 2026-01-01 00:00 UTC.
const START = 1_767_225_600_000;
const DAY_MS = 86_400_000;

let server;
let browser;

before(async () => {
  server = await Server.begin('--wal', 'off');
  browser = await Browser.begin();
  await server.write(Array.from({ length: 21 }, (_, at) => `ms v=${at} ${START + at * 100}`));
});

after(async () => {
  await browser?.end();
  await server?.end();
});

afterEach(() => browser.check());

const parameters = (page) => new URLSearchParams(page.url().split('?')[1] ?? '');
const range = (page) => ['from', 'to'].map((name) => Number(parameters(page).get(name)) - START);

test('a span of milliseconds is kept by the form of fixed times, in local time and UTC', async () => {
  const page = await browser.open(query(server, { q: 'ms_v', from: START + 100, to: START + 900, step: '100ms' }));
  const fix = async (from) => {
    await page.getByTitle('Time range').click();
    if (from) await page.locator('[name=from]').fill(from);
    await page.getByRole('button', { name: 'Show' }).click();
    await becomes(() => page.locator('.panel').count(), 0, page);
  };
  await fix();
  assert.deepEqual(range(page), [100, 900]);
  await fix('2026-01-01 01:00:00.250');
  assert.deepEqual(range(page), [250, 900]);
  await page.getByRole('button', { name: 'Times: local' }).click();
  await fix();
  assert.deepEqual(range(page), [250, 900]);
});
