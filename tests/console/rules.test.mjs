// The Rules page, as somebody sees it who uses it. What corrections say is put into the answers of a
// server whose rules are never late.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { becomes, browsing, parameters, plain, plainTexts, Server, serving, texts, using } from './harness.mjs';

const HOSTILE = '<img src=x onerror=alert(1)>';
const RULES = `
groups:
- name: rooms
  interval: 1s
  rules:
  - {record: 'site:temp:mean', expr: avg by (site) (room_temp), labels: {note: '${HOSTILE}'}}
  - {record: 'site:temp:twice', expr: 'room_temp * on (site) room_temp'}
- name: heat
  interval: 2m
  rules:
  - {alert: Hot, expr: room_temp > 30, for: 5m, annotations: {summary: 'it is hot'}}
`;

const folder = mkdtempSync(join(tmpdir(), 'latewood-rules-'));
after(() => rmSync(folder, { recursive: true }));
const fileOf = (name, text) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

const browser = browsing();
const FILE = fileOf('house.yml', RULES);
const server = serving(() => server.importText(['north', 'south'].flatMap((site) => [1, 2].map((room) => `room_temp{site="${site}",room="${room}"} ${20 + room}`))), '--rules', FILE);

const address = (parameters = {}, of = server) => `${of.address}#/rules?${new URLSearchParams(parameters)}`;
const names = (page) => texts(page, '.rules .table tbody td:first-child');
const row = (page, name) => page.locator('.rules .table tbody tr', { has: page.locator('td:first-child', { hasText: name }) });
const cells = async (page, name) => (await row(page, name).locator('td').allTextContents()).map(plain);
const facts = async (page) => Object.fromEntries(await page.locator('.one dl div').evaluateAll((all) => all.map((one) => [...one.children].map((part) => part.textContent))));

/** Opens the page with rules that `change` has changed. */
const changed = (parameters, change, options) => browser.openChanged(address({ refresh: 'off', ...parameters }), '**/api/v1/rules?*', (data) => {
  const rules = Object.fromEntries(data.groups.flatMap((group) => group.rules.map((rule) => [rule.name, rule])));
  return change(rules, data);
}, options);

const corrected = (changes) => ({
  corrected: true, reason: '', since: '2026-01-01T00:00:00Z', final: null, isPending: false, pendingSteps: 0, pendingFrom: null, pendingTo: null,
  lastRun: '2026-01-03T00:00:00Z', lastRunSeconds: 0.25, rowsWritten: 1234, rowsDeleted: 5, failure: '', ...changes,
});

test('rules are listed with how their last evaluation went', async () => {
  const page = await browser.open(address({ refresh: '2s' }));
  await becomes(() => names(page), ['Hot', 'site:temp:mean', 'site:temp:twice'], page);
  await becomes(async () => (await cells(page, 'mean')).filter((_, at) => [1, 2, 5].includes(at)), ['rooms', 'ok', '2'], page);
  const mean = await cells(page, 'mean');
  assert.match(mean[3], /^\d\d:\d\d:\d\d$/);
  assert.match(mean[4], /^\d+(\.\d+)? (ms|s)$/);
  await becomes(async () => (await cells(page, 'twice'))[2], 'failed', page);
  assert.match(await row(page, 'twice').getByText('failed').getAttribute('title'), /many-to-many|found duplicate series/);
  assert.equal(await page.locator('main img').count(), 0);
});

test('all of a rule is shown, and its expression leads to the Query page', async () => {
  const page = await browser.open(address());
  await row(page, 'site:temp:twice').getByRole('link').press('Enter');
  await page.locator('.one button:focus').waitFor();
  assert.deepEqual(await texts(page, '.one pre'), ['room_temp * on (site) room_temp']);
  await page.locator('.one .error', { hasText: /duplicate series/ }).waitFor();
  const { rule } = Object.fromEntries(parameters(page));
  assert.equal(rule, `${FILE};rooms;1`);
  await page.keyboard.press('Escape');
  await becomes(() => page.locator('.one').count(), 0, page);
  await page.locator('.table:focus').waitFor();
  await row(page, 'site:temp:mean').getByRole('link').press('Enter');
  await becomes(async () => (await facts(page)).labels, `note="${HOSTILE}"`, page);
  assert.equal((await facts(page))['group, file'], `rooms, ${FILE}`);
  await row(page, 'Hot').getByRole('link').press('Enter');
  await becomes(async () => (await facts(page))['for, keep firing for'], '5m, 0s', page);
  await page.locator('.one').getByRole('link', { name: 'Query' }).press('Enter');
  await becomes(() => texts(page, '.cm-line'), ['room_temp > 30'], page);
});

test('what is dirty, final and never corrected, and the delay of inputs', async () => {
  const page = await changed({}, (rules) => {
    rules['site:temp:mean'].corrections = corrected({ isPending: true, pendingSteps: 1200, pendingFrom: '2026-01-02T00:00:00Z', pendingTo: '2026-01-02T05:00:00Z', final: '2026-01-01T12:00:00Z', failure: 'the log is halted' });
    rules['site:temp:mean'].inputDelay = { p50: 2, p99: 61, p999: 5400, samples: 30_000, queryOffset: 5400 };
    rules['site:temp:twice'].corrections = corrected();
    rules['site:temp:twice'].inputDelay = { p50: 0, p99: 0, p999: 0, samples: 0, queryOffset: 0 };
    rules.Hot.inputDelay = null;
    rules.Hot.corrections = { corrected: false, reason: 'alerts are not corrected' };
  });
  await becomes(() => names(page).then((all) => all.length), 3, page);
  assert.deepEqual((await cells(page, 'mean')).slice(6), ['failed', '2026-01-01', '1h30m']);
  assert.deepEqual((await cells(page, 'twice')).slice(6), ['up to date', '\u2013', '0s']);
  assert.deepEqual((await cells(page, 'Hot')).slice(6), ['never', '\u2013', '\u2013']);
  await page.getByLabel('Show').selectOption('behind');
  await becomes(() => names(page), ['site:temp:mean'], page);
  await page.getByLabel('Show').selectOption('all');
  await row(page, 'mean').getByRole('link').press('Enter');
  await becomes(async () => {
    const found = await facts(page);
    return ['dirty steps', 'final before', 'corrected since', 'last correction', 'rows written, removed', '50 %, 99 %, 99.9 %', 'query_offset that would have missed 0.1 %'].map((name) => plain(found[name]));
  }, ['1 200, 2026-01-02 01:00:00 to 2026-01-02 06:00:00', '2026-01-01 13:00:00', '2026-01-01 01:00:00', '2026-01-03 01:00:00, took 250 ms', '1 234, 5', '2s, 1m1s, 1h30m', '1h30m'], page);
  await page.locator('.one .error', { hasText: 'the log is halted. It is tried again.' }).waitFor();
  await row(page, 'Hot').getByRole('link').press('Enter');
  await page.getByText('Late samples do not change what this alert said: alerts are not corrected.').waitFor();
  await row(page, 'twice').getByRole('link').press('Enter');
  await page.getByText('No sample of its selectors came lately.').waitFor();
});

test('a late sample is seen to be worked in, without a reload', async () => {
  const page = await browser.open(address({ refresh: '2s', rule: `${FILE};rooms;0` }));
  await becomes(async () => (await facts(page))['corrected since']?.startsWith('20'), true, page);
  // Of a room that nobody has heard of, between the steps that were evaluated.
  await server.importText([`room_temp{site="late",room="1"} 7 ${Date.now() - 2500}`]);
  await becomes(async () => /^[1-9]/.test((await facts(page))['rows written, removed']), true, page);
  await becomes(async () => (await facts(page))['dirty steps'], 'none', page);
  await becomes(async () => (await cells(page, 'mean'))[6], 'up to date', page);
});

test('groups are listed, and lead to their rules', async () => {
  const page = await browser.openChanged(address({ refresh: 'off' }), '**/api/v1/rules?*', ({ groups }) => {
    groups.find(({ name }) => name === 'rooms').evaluationTime = 1.5;
  });
  await page.getByRole('tab', { name: 'Groups' }).click();
  await becomes(() => names(page), ['heat', 'rooms'], page);
  assert.deepEqual((await cells(page, 'rooms')).filter((_, at) => [1, 3, 5, 8].includes(at)), ['2', '1s', '1.50 s', FILE]);
  assert.match(await row(page, 'rooms').getByText('1.50 s').getAttribute('title'), /evaluations are missed/);
  await row(page, 'rooms').getByRole('link').press('Enter');
  await becomes(() => names(page), ['site:temp:mean', 'site:temp:twice'], page);
  await page.getByRole('button', { name: 'One group' }).press('Enter');
  await becomes(async () => (await names(page)).length, 3, page);
});

test('filter, kind and order are in the address, and a link shows the same', async () => {
  const page = await browser.open(`${server.address}#/queries`);
  await page.locator('.queries-page').waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await page.getByLabel('Filter').fill('ROOMS temp');
  await becomes(() => names(page), ['site:temp:mean', 'site:temp:twice'], page);
  await page.getByRole('button', { name: 'Rule', exact: false }).first().press('Enter');
  await becomes(() => names(page), ['site:temp:twice', 'site:temp:mean'], page);
  await becomes(() => plainTexts(page, '.rules .bar [role=status]'), ['2 of 3 rules'], page);
  assert.deepEqual(Object.fromEntries(parameters(page)), { filter: 'ROOMS temp', order: '-rule' });
  const other = await browser.open(page.url());
  await becomes(() => names(other), ['site:temp:twice', 'site:temp:mean'], other);
  await other.getByLabel('Show').selectOption('alerting');
  await other.getByRole('button', { name: 'Show all rules' }).press('Enter');
  await becomes(async () => (await names(other)).length, 3, other);
});

test('files are read again, and a wrong one changes nothing', async () => {
  const file = fileOf('mine.yml', 'groups: [{name: a, rules: [{record: one, expr: "1"}]}]\n');
  await using(['--wal', 'off', '--rules', file], async (other) => {
    const page = await browser.open(address({ refresh: 'off' }, other));
    await becomes(() => names(page), ['one'], page);
    writeFileSync(file, 'groups: [{name: a, rules: [{record: one, expr: "1"}, {record: two, expr: "2"}]}]\n');
    await page.getByRole('button', { name: 'Reload' }).press('Enter');
    await page.getByText('The rule files were read again.').waitFor();
    await becomes(() => names(page), ['one', 'two'], page);
    writeFileSync(file, 'groups: [{name: a, rules: [{record: one, expr: "sum("}]}]\n');
    await page.getByRole('button', { name: 'Reload' }).press('Enter');
    await page.locator('p.error', { hasText: /mine.yml: 1:.*The rules that run stay\./ }).waitFor();
    assert.deepEqual(await names(page), ['one', 'two']);
  });
  const page = await changed({}, (_, data) => { data.mayReload = false; });
  await becomes(async () => (await names(page)).length, 3, page);
  assert.equal(await page.getByRole('button', { name: 'Reload' }).count(), 0);
});

test('who may not read every series is told that rules and alerts are hidden', () =>
  using(['--wal', 'off', '--rules', FILE, '--user', 'default on nopass ~t* +@all'], async (other) => {
    for (const [name, title] of [['rules', 'No rules'], ['alerts', 'No alert is active']]) {
      const page = await browser.open(`${other.address}#/${name}`);
      await page.getByRole('heading', { name: title }).waitFor();
      await page.locator('.remarks .warning', { hasText: 'rules and alerts are hidden' }).waitFor();
    }
  }));

test('no rules: the page tells how there are some; a server that is away is told of', async () => {
  const empty = await Server.begin('--wal', 'off');
  try {
    const page = await browser.open(address({}, empty));
    await page.getByText("latewood serve --rules '/etc/latewood/rules/*.yml'").waitFor();
    await empty.kill();
    await page.getByRole('button', { name: 'Ask again' }).press('Enter');
    await page.locator('.notice.error', { hasText: 'the server does not answer' }).waitFor();
    await page.route('**/api/v1/rules?*', (route) => route.fulfill({ status: 403, json: { errorType: 'forbidden', error: 'no' } }));
    await page.getByRole('button', { name: 'Ask again' }).press('Enter');
    await page.getByText('permission for the command TS.MRANGE').waitFor();
  } finally {
    await empty.end();
  }
});

test('what is null, missing or hostile breaks nothing', async () => {
  const page = await changed({}, (rules, data) => {
    data.groups = [{}, { name: HOSTILE, file: null, rules: [{}, { name: HOSTILE, health: 'new', type: 'recording', corrections: {}, inputDelay: {} }, null] }];
  }, { viewport: { width: 400, height: 800 } });
  await becomes(async () => (await names(page)).length, 3, page);
  await row(page, HOSTILE).getByRole('link').press('Enter');
  await page.locator('.one').waitFor();
  assert.doesNotMatch(await page.locator('main').innerText(), /NaN|undefined|null|Invalid|\[object/);
  assert.equal(await page.locator('main img').count(), 0);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});

test('thousands of rules are paged through, and only those in sight are drawn', async () => {
  const group = (at) => `- name: g${at}\n  interval: 1h\n  rules:\n${Array.from({ length: 10 }, (_, rule) => `  - {record: 'r${at}_${rule}', expr: '1'}\n`).join('')}`;
  await using(['--wal', 'off', '--rules', fileOf('many.yml', `groups:\n${Array.from({ length: 300 }, (_, at) => group(at)).join('')}`)], async (many) => {
    const page = await browser.open(address({ refresh: 'off', filter: 'g29' }, many));
    await becomes(() => plainTexts(page, '.rules .bar [role=status]'), ['110 of 3 000 rules'], page);
    assert.ok(await page.locator('.rules tbody tr').count() < 100);
  });
});
