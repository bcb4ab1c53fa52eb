// The Cardinality page, as somebody sees it who uses it.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { becomes, Browser, Server, texts } from './harness.mjs';

const HOSTILE = '<img src=x onerror=alert(1)>"\\x';

let server;
let browser;

before(async () => {
  server = await Server.begin('--wal', 'off');
  browser = await Browser.begin();
  const now = Date.now();
  const lines = [];
  for (let at = 0; at < 30; at++) lines.push(`http,pod=p${at},job=${at < 20 ? 'api' : 'web'} requests=1 ${now}`);
  lines.push(`mem,who=${HOSTILE.replace(/[ =]/g, '\\$&')} bytes=1 ${now}`);
  await server.write(lines);
});

after(async () => {
  await browser?.end();
  await server?.end();
});

afterEach(() => browser.check());

const address = (parameters = {}) => `${server.address}#/cardinality?${new URLSearchParams(parameters)}`;
const parameters = (page) => new URLSearchParams(page.url().split('?')[1] ?? '');
const list = (page, title) => page.getByRole('region', { name: title, exact: true }).locator('table');
/** Names and figures of a list. */
const rows = (page, title) => list(page, title).locator('tbody tr').evaluateAll((found) =>
  found.map((row) => `${row.cells[0].textContent} ${row.cells[1].textContent}`));
const heads = (page) => texts(page, '.heads dd');

test('series are counted by metric, pair and label, and rows narrow the filter', async () => {
  const page = await browser.open(address());
  await becomes(() => rows(page, 'Series by metric'), ['http_requests 30', 'mem_bytes 1'], page);
  assert.deepEqual((await heads(page)).slice(0, 1), ['31']);
  assert.deepEqual((await rows(page, 'Series by pair')).slice(0, 3), ['__name__=http_requests 30', 'job=api 20', 'job=web 10']);
  assert.deepEqual((await rows(page, 'Values by label')).slice(0, 1), ['pod 30']);
  await list(page, 'Series by pair').getByRole('link', { name: 'job=web', exact: true }).click();
  await becomes(() => rows(page, 'Series by metric'), ['http_requests 10'], page);
  assert.equal(parameters(page).get('match'), '{job="web"}');
  await list(page, 'Series by label').getByRole('link', { name: 'pod', exact: true }).click();
  await becomes(async () => (await rows(page, 'Series by value of pod')).length, 10, page);
  await list(page, 'Series by value of pod').getByRole('link', { name: 'p25', exact: true }).click();
  await becomes(async () => (await heads(page))[0], '1', page);
  assert.equal(parameters(page).get('match'), '{job="web", pod="p25"}');
  await page.getByRole('link', { name: 'Query http_requests' }).first().click();
  await becomes(() => texts(page, '.cm-line'), ['{job="web", pod="p25", __name__="http_requests"}'], page);
});

test('the filter says what it would match before it is shown, and where it is wrong', async () => {
  const page = await browser.open(address());
  await becomes(async () => (await heads(page))[0], '31', page);
  await page.locator('.filter .cm-content').click();
  await page.keyboard.type('http_requests{job=~"a.*"');
  const said = page.locator('.filter > p');
  await becomes(() => said.textContent(), 'Would match 20 series; Enter shows them.', page);
  assert.equal((await heads(page))[0], '31');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await becomes(async () => (await heads(page))[0], '20', page);
  assert.equal(await said.textContent(), 'Matches 20 series.');
  await page.goto(address({ match: 'rate(http_requests[1m])' }));
  await page.locator('.notice.error', { hasText: 'bad_data' }).waitFor();
  await page.goto(address({ match: 'nothing' }));
  await page.getByRole('button', { name: 'Count all series' }).click();
  await becomes(async () => (await heads(page))[0], '31', page);
});

test('a hostile value is text, and its row leads to it alone', async () => {
  const page = await browser.open(address({ focus: 'who' }));
  await becomes(() => rows(page, 'Series by value of who'), [`${HOSTILE} 1`], page);
  assert.equal(await page.locator('.lists img').count(), 0);
  await list(page, 'Series by value of who').getByRole('link', { name: HOSTILE, exact: true }).click();
  await becomes(() => rows(page, 'Series by metric'), ['mem_bytes 1'], page);
  await page.goBack();
  await page.getByLabel('Values of label').fill('job');
  await page.keyboard.press('Enter');
  await becomes(() => rows(page, 'Series by value of job'), ['api 20', 'web 10'], page);
  await becomes(async () => (await heads(page))[0], '31', page);
});
