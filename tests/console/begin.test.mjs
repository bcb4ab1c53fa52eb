// The first query of somebody who does not know the names: what the empty page offers, completion,
// and where an empty result leads.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, complete, listed, parameters, query, serving, START, texts, using } from './harness.mjs';

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
    await page.keyboard.type(typed);
    await complete(page, name);
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
  await page.keyboard.type('room_');
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
