// Tables and JSON of the Query page: what is not a number, and answers of any size.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, afterEach, before, test } from 'node:test';
import { becomes, Browser, query, Server, texts } from './harness.mjs';

// 2026-01-01 00:00 UTC.
const START = 1_767_225_600_000;
const SPAN = { from: String(START), to: String(START + 60_000) };

let server;
let browser;

before(async () => {
  server = await Server.begin('--wal', 'off');
  browser = await Browser.begin();
  const body = Object.entries({ a: 1, b: 'NaN', c: 2, d: '-Inf', e: '+Inf' }).map(([id, value]) => `odd{id="${id}"} ${value} ${START + 60_000}\n`).join('');
  const answer = await fetch(`${server.address}api/v1/import/prometheus`, { method: 'POST', body });
  assert.equal(answer.status, 204, await answer.text());
});

after(async () => {
  await browser?.end();
  await server?.end();
});

afterEach(() => browser.check());

test('NaN is last in either order', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'odd', view: 'table' }));
  const values = () => texts(page, '.table td.number');
  const head = page.getByRole('button', { name: 'Value' });
  await head.click();
  await becomes(values, ['+Inf', '2', '1', '-Inf', 'NaN'], page);
  await head.click();
  await becomes(values, ['-Inf', '1', '2', '+Inf', 'NaN'], page);
});
