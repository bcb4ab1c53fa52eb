// The Alerts page, as somebody sees it who uses it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { becomes, browsing, parameters, plainTexts, Server, texts } from './harness.mjs';

const HOSTILE = '<img src=x onerror=alert(1)>';
const RULES = `
groups:
- name: heat
  interval: 1s
  rules:
  - {alert: Hot, expr: room_temp > 30, labels: {severity: page}, annotations: {summary: '{{ $labels.site }} is at {{ $value }}', runbook: '${HOSTILE}'}}
  - {alert: Warm, expr: room_temp > 20, for: 1h}
`;

const folder = mkdtempSync(join(tmpdir(), 'latewood-alerts-'));
const browser = browsing();
let server;
let manager;
before(async () => {
  manager = createServer((request, response) => request.resume().on('end', () => response.end())).listen(0, '127.0.0.1');
  await once(manager, 'listening');
  const gone = createServer().listen(0, '127.0.0.1');
  await once(gone, 'listening');
  const [told, untold] = [manager, gone].map((one) => `http://127.0.0.1:${one.address().port}`);
  gone.close();
  const file = join(folder, 'heat.yml');
  writeFileSync(file, RULES);
  server = await Server.begin('--wal', 'off', '--rules', file, '--alertmanager', told, '--alertmanager', untold);
  await server.importText(['room_temp{site="north"} 35', 'room_temp{site="south"} 25']);
});
after(async () => {
  await server?.end();
  manager?.close();
  rmSync(folder, { recursive: true });
});

const address = (parameters = {}) => `${server.address}#/alerts?${new URLSearchParams(parameters)}`;
const rows = (page, kind = 'list') => page.locator(`.alerts .${kind} tbody tr`).evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
const facts = async (page) => Object.fromEntries(await page.locator('.one dl div').evaluateAll((all) => all.map((one) => [...one.children].map((part) => part.textContent))));

test('active alerts are listed with state, since, value, labels and what they say', async () => {
  const page = await browser.open(address({ refresh: '2s' }));
  await becomes(async () => (await rows(page)).map((row) => row.filter((_, at) => at !== 2)), [
    ['Hot', 'firing', '35', 'severity="page", site="north"', 'north is at 35'],
    ['Warm', 'pending', '35', 'site="north"', ''],
    ['Warm', 'pending', '25', 'site="south"', ''],
  ], page);
  assert.match((await rows(page))[0][2], /^\d\d:\d\d:\d\d$/);
  await becomes(() => plainTexts(page, '.alerts .bar [role=status]'), ['3 of 3 alerts, 1 firing'], page);
});

test('all of an alert is shown, and leads to its rule', async () => {
  const page = await browser.open(address());
  await page.locator('.list').getByRole('link', { name: 'Hot' }).press('Enter');
  await page.locator('.one button:focus').waitFor();
  const { state, value, labels, summary, runbook, 'active since': since } = await facts(page);
  assert.deepEqual([state, value, labels, summary, runbook], ['firing', '35', 'severity="page", site="north"', 'north is at 35', HOSTILE]);
  assert.match(since, /^20\d\d-.* for \d/);
  assert.equal(parameters(page).get('alert'), '{alertname="Hot", severity="page", site="north"}');
  assert.equal(await page.locator('main img').count(), 0);
  await page.keyboard.press('Escape');
  await page.locator('.list .table:focus').waitFor();
  assert.equal(await page.locator('.one').count(), 0);
  await page.locator('.list').getByRole('link', { name: 'Hot' }).press('Enter');
  await page.locator('.one').getByRole('link', { name: 'Rule' }).press('Enter');
  await becomes(() => texts(page, '.rules tbody td:first-child'), ['Hot'], page);
});

test('Alertmanagers are listed with what they were told, and why one was not', async () => {
  const page = await browser.open(address({ refresh: '2s' }));
  await becomes(async () => (await rows(page, 'managers')).map(([, , sent, lost, error]) => [sent !== '0', lost !== '0', /refused/.test(error)]), [[true, false, false], [false, true, true]], page);
});

test('filter, state and order are in the address, and a link shows the same', async () => {
  const page = await browser.open(`${server.address}#/queries`);
  await page.locator('.queries-page').waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await page.getByLabel('Filter').fill('NORTH');
  await becomes(async () => (await rows(page)).length, 2, page);
  await page.getByLabel('Show').selectOption('pending');
  await becomes(async () => (await rows(page)).map(([name]) => name), ['Warm'], page);
  assert.deepEqual(Object.fromEntries(parameters(page)), { filter: 'NORTH', state: 'pending' });
  const other = await browser.open(page.url());
  await becomes(async () => (await rows(other)).map(([name]) => name), ['Warm'], other);
  await other.getByLabel('Filter').fill('no such');
  await other.getByRole('button', { name: 'Show all alerts' }).press('Enter');
  await becomes(async () => (await rows(other)).length, 3, other);
});

test('no alerts, no Alertmanagers, and a server that is away', async () => {
  const empty = await Server.begin('--wal', 'off');
  try {
    const page = await browser.open(`${empty.address}#/alerts?alert=x`);
    await page.getByRole('heading', { name: 'No alert is active' }).waitFor();
    await page.getByText('x is not active now.').waitFor();
    await page.getByText('--alertmanager http://HOST:9093').waitFor();
    await empty.kill();
    await page.getByRole('button', { name: 'Ask again' }).press('Enter');
    await page.locator('.notice.error', { hasText: 'the server does not answer' }).first().waitFor();
    await page.route('**/api/v1/alerts', (route) => route.fulfill({ status: 403, json: { errorType: 'forbidden', error: 'no' } }));
    await page.getByRole('button', { name: 'Ask again' }).press('Enter');
    await page.getByText('permission for the command TS.MRANGE').waitFor();
  } finally {
    await empty.end();
  }
});

test('what is null, missing or hostile breaks nothing', async () => {
  const page = await browser.openChanged(address({ refresh: 'off' }), '**/api/v1/alerts', () => ({
    alerts: [null, {}, { labels: { alertname: HOSTILE, constructor: 'x' }, annotations: { __proto__: null, toString: HOSTILE }, state: 'firing', value: '+Inf', activeAt: 'soon' }],
  }), { viewport: { width: 400, height: 800 } });
  await becomes(async () => (await rows(page)).length, 3, page);
  await page.locator('.list').getByRole('link', { name: HOSTILE }).press('Enter');
  await page.locator('.one').waitFor();
  assert.doesNotMatch(await page.locator('main').innerText(), /NaN|undefined|null|Invalid|\[object/);
  assert.equal(await page.locator('main img').count(), 0);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});
