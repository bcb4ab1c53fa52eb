// The Queries page, as somebody sees it who uses it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, LONG, Server, serving, texts } from './harness.mjs';

const HOSTILE = 'count({who="<img src=x onerror=alert(1)>"})';

const browser = browsing();
const server = serving();

const ask = (parameters) => fetch(`${server.address}api/v1/query`, { method: 'POST', body: new URLSearchParams(parameters) });
const active = async () => (await (await fetch(`${server.address}api/v1/status/active_queries`)).json()).data;
const running = (page) => page.locator('.running li .what');
const firstCells = (page) => texts(page, '.ended tbody td:first-child');

test('a query that runs is listed and cancelled by a second click', async () => {
  const page = await browser.open(`${server.address}#/queries`);
  await page.getByText('No query runs at the moment.').waitFor();
  const asked = [];
  page.on('request', (request) => { if (request.method() !== 'GET') asked.push(request.url()); });
  const answer = ask({ query: LONG, time: '1e9' });
  await becomes(() => running(page).count(), 1, page);
  const text = await running(page).textContent();
  assert.ok(text.startsWith(LONG), text);
  assert.match(text, /user default.*at 2001-09-09 03:46:40/);
  // Neither a first click nor a double one ends it.
  const button = page.locator('.running button');
  await button.dblclick();
  await page.keyboard.press('Escape');
  await becomes(() => texts(page, '.running button'), ['Cancel'], page);
  assert.equal((await active())[0].canceled, false);
  assert.deepEqual(asked, []);
  const { id } = (await active())[0];
  await button.press('Enter');
  await page.getByRole('button', { name: `Yes, cancel query ${id}` }).press('Enter');
  await page.getByText(`Query ${id} is cancelled.`).waitFor();
  assert.equal((await answer).status, 499);
  await page.getByText('No query runs at the moment.').waitFor();
  assert.deepEqual(asked.map((url) => new URL(url).pathname), [`/api/v1/status/active_queries/${id}/cancel`]);
  await becomes(async () => (await firstCells(page)).includes(LONG), true, page);
});

test('queries that ended are ordered, and lead to the Query page', async () => {
  for (let turn = 0; turn < 5; turn++) assert.equal((await ask({ query: HOSTILE })).status, 200);
  const cut = `count({who="${'x'.repeat(1100)}"})`;
  await ask({ query: cut });
  const page = await browser.open(`${server.address}#/queries`);
  const shortened = page.locator('.ended tbody tr', { hasText: `${cut.slice(0, 1024)}...` });
  await shortened.waitFor();
  assert.equal(await shortened.getByRole('link').count(), 0, 'the beginning of a query is none');
  await page.getByRole('tab', { name: 'Most often' }).click();
  await becomes(async () => (await firstCells(page))[0], HOSTILE, page);
  assert.match(page.url(), /by=count/);
  const row = page.locator('.ended tbody tr').first();
  assert.deepEqual((await row.locator('td').allTextContents()).slice(1, 3), ['instant', '5']);
  assert.equal(await page.locator('main img').count(), 0);
  await row.getByRole('link').click();
  await becomes(() => texts(page, '.cm-line'), [HOSTILE], page);
});

test('a login is asked for, and a server that is away is told of until it is back', async () => {
  const guarded = await Server.begin('--wal', 'off', '--requirepass', 'sesame');
  try {
    const page = await browser.open(`${guarded.address}#/queries`);
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Password').fill('sesame');
    await page.keyboard.press('Enter');
    await page.getByText('No query runs at the moment.').waitFor();
    await guarded.kill();
    await page.locator('.notice.error', { hasText: 'the server does not answer' }).first().waitFor();
    await guarded.start();
    await becomes(() => page.locator('.notice.error').count(), 0, page);
  } finally {
    await guarded.end();
  }
});
