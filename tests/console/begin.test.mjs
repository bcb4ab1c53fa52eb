// The first query of somebody who does not know the names: what the empty page offers, completion,
// links that are broken, and where an empty result leads.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, parameters, query, serving, START, texts, using } from './harness.mjs';

const SPAN = { from: String(START), to: String(START + 600_000) };

const browser = browsing();
const server = serving(async () => {
  await server.importText([
    '# TYPE requests_total counter', '# HELP requests_total Requests, by code.',
    ...[0, 1].flatMap((at) => [
      `requests_total{code="200"} ${at} ${START + at * 60_000}`, `room_temp{site="north"} ${at} ${START + at * 60_000}`,
      `{"http.server.duration","http.route"="/cart"} ${at} ${START + at * 60_000}`, `wait_bucket{le="1"} ${at} ${START + at * 60_000}`,
    ]),
  ]);
});

const editor = (page, name = 'Query A') => page.getByLabel(name).locator('.cm-content');
const listed = (page, text) => page.locator('.cm-tooltip-autocomplete li', { hasText: text });
const warnings = (page) => texts(page, '.page > .remarks .warning');

test('before the first query the page lists metrics and makes queries of them', async () => {
  const page = await browser.open(query(server, SPAN));
  const buttons = () => texts(page, '.begin code');
  await becomes(buttons, [
    '{"http.server.duration"}', 'requests_total', 'room_temp', 'wait_bucket',
    'avg_over_time({"http.server.duration"}[5m])', 'topk(5, {"http.server.duration"})', 'sum(rate(requests_total[5m]))',
    'histogram_quantile(0.99, sum by (le) (rate(wait_bucket[5m])))',
  ], page);
  await page.locator('.begin small', { hasText: 'Requests, by code.' }).waitFor();
  await page.getByRole('button', { name: 'topk(5' }).click();
  await becomes(() => texts(page, '.legend .name'), ['{"http.server.duration", "http.route"="/cart"}'], page);
  await page.goBack();
  await page.getByRole('button', { name: 'room_temp' }).click();
  await becomes(() => texts(page, '.legend .name'), ['room_temp{site="north"}'], page);
});

test('a server without series says how to write one', () =>
  using(['--wal', 'off'], async (other) => {
    const page = await browser.open(`${other.address}#/query`);
    await page.getByRole('heading', { name: 'No series yet' }).waitFor();
    await page.getByText('curl --data-binary').waitFor();
  }));

test('names with dots are completed, as PromQL writes them', async () => {
  const page = await browser.open(query(server, SPAN));
  const choose = async (typed, name) => {
    await page.keyboard.type(typed, { delay: 30 });
    await listed(page, name).waitFor();
    await page.waitForTimeout(200); // completion takes no key in its first moment
    await page.keyboard.press('Enter');
  };
  await editor(page).click();
  await choose('sum(http.ser', 'http.server.duration');
  await becomes(() => texts(page, '.cm-line'), ['sum({"http.server.duration"})'], page);
  await page.keyboard.press('ArrowLeft');
  await choose(', http.ro', 'http.route');
  await becomes(() => texts(page, '.cm-line'), ['sum({"http.server.duration", "http.route"})'], page);
  const clear = async () => {
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Delete');
  };
  await clear();
  await choose('htt', 'http.server.duration');
  await becomes(() => texts(page, '.cm-line'), ['{"http.server.duration"}'], page);
  await clear();
  await choose('{"http.ser', 'http.server.duration');
  await becomes(() => texts(page, '.cm-line'), ['{"http.server.duration"}'], page);
});

test('the list of completion lies below the whole line, underscores too', async () => {
  const page = await browser.open(query(server, SPAN));
  await editor(page).click();
  await page.keyboard.type('room_', { delay: 30 });
  await listed(page, 'room_temp').waitFor();
  const line = await page.locator('.cm-line').boundingBox();
  const list = await page.locator('.cm-tooltip-autocomplete').boundingBox();
  assert.ok(list.y >= line.y + line.height, `${list.y} is above ${line.y + line.height}`);
});

test('an empty result leads to Explain', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'room_temp > 100' }));
  await page.locator('.notice').getByRole('link', { name: 'Explain' }).click();
  await page.getByText('The comparison removes all series.').waitFor();
  assert.deepEqual([parameters(page).get('q'), parameters(page).get('from')], ['room_temp > 100', SPAN.from]);
});

test('what is broken in a link is said, on every page', async () => {
  for (const [address, wanted] of [
    ['query?q=room_temp&range=abc&step=x&refresh=often&view=grid', [
      'range=abc, which is not a duration such as 1h30m: the last 1h is shown', 'step=x, which is not a duration such as 30s: the step fits the range',
      'refresh=often, which is not a duration such as 1h30m or off: it does not refresh', 'view=grid, which is not one of graph, table, json: the graph is shown',
    ]],
    ['query?from=2026-01-01&to=7', ['from=2026-01-01, which is not a time in milliseconds: the last 1h is shown']],
    ['query?from=7&range=2h', ['from without to: the last 2h is shown']],
    ['query?from=8&to=7', ['from=8, which is not before to=7: the last 1h is shown']],
    ['explain?q=1&range=abc&step=x&instant=yes', ['range=abc', 'step=x', 'instant=yes']],
    ['series?by=name&how=regex', ['by=name', 'how=regex']],
    ['series?key=room_temp%7Bsite%3D%22north%22%7D&range=abc&refresh=x&at=y', ['range=abc', 'refresh=x', 'at=y']],
    ['late?by=host&ages=old&refresh=x', ['by=host', 'ages=old', 'refresh=x']],
    ['cardinality?idle=x', ['idle=x']],
    ['queries?by=user', ['by=user']],
    ['rules?only=failed&refresh=x', ['only=failed', 'refresh=x']],
    ['server?refresh=x', ['refresh=x']],
  ]) {
    const page = await browser.open(`${server.address}#/${address}`);
    await becomes(async () => {
      const found = await warnings(page);
      return [found.length, wanted.filter((text) => !found.some((one) => one.includes(`The address has ${text}`)))];
    }, [wanted.length, []], page);
    await page.context().close();
  }
});

test('a step that is too short, or typed wrong, is said', async () => {
  const page = await browser.open(query(server, { q: 'vector(1)', from: START, to: START + 30 * 86_400_000, step: '1s' }));
  await becomes(() => warnings(page), ['warningA step of 1s makes more than 10\u202f900 steps: one of 3m57s799ms is used.'], page);
  const step = page.getByRole('textbox', { name: 'Step' });
  await step.fill('soon');
  await step.press('Enter');
  await becomes(async () => (await warnings(page))[0], 'warningThe address has step=soon, which is not a duration such as 30s: the step fits the range.', page);
  await step.fill('1h');
  await step.press('Enter');
  await becomes(() => warnings(page), [], page);
});
