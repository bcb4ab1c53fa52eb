// Every page of the navigation, and what lies over pages, by the rules of axe-core for WCAG 2.2 A
// and AA: nothing that it calls serious or critical. Light, dark and narrow, with data and without.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { browsing, serving } from './harness.mjs';

const AXE = readFileSync(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
// Pages take what they know of these.
const FILLED = { q: 'sum by (host) (cpu_usage)', key: 'room', focus: 'host', refresh: 'off' };

const folder = mkdtempSync(join(tmpdir(), 'latewood-axe-'));
after(() => rmSync(folder, { recursive: true }));
const RULES = join(folder, 'rules.yml');
// What is wrong stays wrong when the samples of this test are older than the lookback.
writeFileSync(RULES, `
groups:
- name: hosts
  interval: 1s
  rules:
  - {record: 'host:cpu:max', expr: max by (host) (cpu_usage)}
  - {record: 'wrong', expr: 'vector(1) * on () (vector(1) or label_replace(vector(1), "a", "b", "", ""))'}
  - {alert: Busy, expr: vector(1), annotations: {summary: busy}}
`);

const browser = browsing();
const server = serving(async () => {
  const now = Date.now();
  await server.write(Array.from({ length: 200 }, (_, at) => `cpu,host=h${at % 20} usage=${at} ${now - at * 1000}`));
  await server.redis(
    ['TS.CREATE', 'room', 'LABELS', 'floor', '2'], ['TS.CREATE', 'room:1m'],
    ['TS.CREATERULE', 'room', 'room:1m', 'AGGREGATION', 'avg', '60000'],
    ['TS.ADD', 'room', String(now - 90_000), '1'], ['TS.ADD', 'room', String(now), '2'], ['TS.ADD', 'room', String(now - 1000), '3'],
  );
  // The limit of series is met.
  await fetch(`${server.address}write?precision=ms`, { method: 'POST', body: Array.from({ length: 50 }, (_, at) => `cpu,host=more${at} usage=1 ${now}`).join('\n') }, '--max-series', '40');
  for (const query of ['cpu_usage', 'rate(cpu_usage[1m])', 'no such (']) {
    await fetch(`${server.address}api/v1/query`, { method: 'POST', body: new URLSearchParams({ query }) });
  }
}, '--rules', RULES, '--alertmanager', 'http://127.0.0.1:9');

/** What axe finds wrong within what a selector finds. The script comes by the debugger, which the content security policy lets pass. */
async function violations(page, within = 'html') {
  await page.evaluate(AXE);
  const { passes, violations } = await page.evaluate(({ within, runOnly }) =>
    window.axe.run(within, { runOnly, resultTypes: ['violations'] }), { within, runOnly: TAGS });
  assert.ok(passes.length > 5, `axe looked at ${passes.length} rules only`);
  return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.html.slice(0, 200)} (${node.any.concat(node.all, node.none).map(({ message }) => message).join('; ')})`));
}

/** What is wrong at an address, in light and dark. */
async function look(where, address, act, within) {
  return lookAt(where, await browser.open(address), act, within);
}

async function lookAt(where, page, act = async () => {}, within = undefined) {
  await act(page);
  await page.waitForLoadState('networkidle');
  const wrong = [];
  const check = async (how) => wrong.push(...(await violations(page, within)).map((one) => `${where}, ${how}: ${one}`));
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, colorScheme);
    await check(colorScheme);
  }
  await page.setViewportSize({ width: 400, height: 800 });
  await check('narrow');
  await page.context().close();
  return wrong;
}

/** The pages, as the navigation names them. */
async function pages() {
  const page = await browser.open(server.address);
  const links = await page.locator('.navigation li a').evaluateAll((found) => found.map((link) => link.getAttribute('href')));
  await page.context().close();
  return links;
}

test('every page, with data and without', async () => {
  const found = await pages();
  assert.ok(found.length >= 5, String(found));
  const wrong = [];
  for (const link of found) {
    wrong.push(...await look(link, `${server.address}${link}`));
    wrong.push(...await look(`${link} filled`, `${server.address}${link}?${new URLSearchParams(FILLED)}`));
  }
  assert.deepEqual(wrong, []);
});

test('the login, tables, open menus, and errors', async () => {
  const wrong = [];
  const filled = (parameters) => `${server.address}#/query?${new URLSearchParams({ ...FILLED, ...parameters })}`;
  wrong.push(...await look('login', server.address, (page) => page.getByRole('button', { name: 'Log in' }).click()));
  wrong.push(...await look('table', filled({ view: 'table' }), (page) => page.locator('.table').first().waitFor()));
  wrong.push(...await look('mistake', filled({ q: 'rate(' }), (page) => page.locator('.cm-lintRange-error').waitFor()));
  const opened = await browser.open(filled());
  const menus = opened.locator('.menu > button');
  await menus.first().waitFor();
  const count = await menus.count();
  await opened.context().close();
  // An open menu hides a part of the page, which is as it should be.
  for (let at = 0; at < count; at++) wrong.push(...await look(`menu ${at}`, filled(), (page) => page.locator('.menu > button').nth(at).click(), '.menu'));
  for (const link of await pages()) {
    const context = await browser.chromium.newContext();
    await context.route('**/api/v1/**', (route) => route.fulfill({ status: 503, json: { status: 'error', errorType: 'unavailable', error: 'too many requests' } }));
    wrong.push(...await lookAt(`${link} refused`, await browser.openIn(context, `${server.address}${link}?${new URLSearchParams(FILLED)}`)));
  }
  assert.deepEqual(wrong, []);
});

test('a deletion that waits for its second step, and one that is refused', async () => {
  const wrong = [];
  for (const [words, select, shown] of [['samples', 'cpu_usage', '.danger'], ['series', 'cpu_usage', '.danger'], ['samples', 'rate(', '.notice.error']]) {
    wrong.push(...await look(`${words} of ${select}`, `${server.address}#/series?${new URLSearchParams({ delete: words, select })}`, async (page) => {
      await page.getByRole('button', { name: 'Count', exact: true }).click();
      await page.locator(shown).waitFor();
    }));
  }
  assert.deepEqual(wrong, []);
});

test('rules that have failed', async () => {
  const address = `${server.address}#/compaction?${new URLSearchParams({ rule: 'room:1m', refresh: 'off' })}`;
  const page = await browser.openChanged(address, '**/status/rules?*', ({ rules }) => {
    Object.assign(rules[0], { dirty_buckets: 3, failed_buckets: 1, failed: [{ first_ms: 0, last_ms: 59_999 }] });
  });
  assert.deepEqual(await lookAt('failed', page, () => page.locator('.failed li').waitFor()), []);
});

test('a rule that is behind and one that fails, an alert and an Alertmanager that refuses', async () => {
  const address = (page, parameters) => `${server.address}#/${page}?${new URLSearchParams({ refresh: 'off', ...parameters })}`;
  for (const at of [0, 1]) {
    const page = await browser.openChanged(address('rules', { rule: `${RULES};hosts;${at}` }), '**/api/v1/rules?*', ({ groups: [{ rules }] }) => {
      rules[0].corrections = { corrected: true, isPending: true, pendingSteps: 7, pendingFrom: '2026-01-01T00:00:00Z', pendingTo: '2026-01-02T00:00:00Z', failure: 'the disk is almost full' };
      rules[0].inputDelay = { p50: 1, p99: 2, p999: 3, samples: 100, queryOffset: 3 };
    });
    assert.deepEqual(await lookAt(`rule ${at}`, page, () => page.locator('.one .error').waitFor()), []);
  }
  const alert = await browser.open(address('alerts', { alert: '{alertname="Busy"}', refresh: '2s' }));
  assert.deepEqual(await lookAt('alert', alert, () => Promise.all(['.one dl', '.managers .bad'].map((shown) => alert.locator(shown).waitFor()))), []);
});

test('nodes of a cluster that need attention', async () => {
  const node = { is_this: false, address: 'db-2:6379', http_address: 'db-2:8086', version: '0.1.0', role: 'follower', since_ms: 0, behind_ms: 9000, applied_group: 7, heard_ms: 700, users_differ: true };
  const page = await browser.openChanged(`${server.address}#/cluster?${new URLSearchParams({ refresh: 'off' })}`, '**/status/server', (data) => {
    data.cluster = { role: 'follower', since_ms: 0, epoch: 5, owner: null, behind_ms: 9000, newest_group: 9, unapplied_groups: 2, max_staleness_ms: 5000, members: [{ ...node, id: 'a', is_this: true }, { ...node, id: 'b' }] };
  });
  assert.deepEqual(await lookAt('cluster', page, () => page.locator('.table a').waitFor()), []);
});

test('a page that waits for its answer', async () => {
  const context = await browser.chromium.newContext();
  await context.route('**/api/v1/**', () => {});
  const page = await browser.openIn(context, `${server.address}#/query?q=up`);
  await page.getByRole('progressbar', { name: 'Loading' }).waitFor();
  assert.deepEqual(await violations(page), []);
  await context.close();
});

test('what is wrong is found', async () => {
  const page = await browser.open(`${server.address}#/queries`);
  await page.evaluate(() => document.querySelector('main').append(document.createElement('button')));
  assert.match((await violations(page)).join('\n'), /^button-name: /);
});
