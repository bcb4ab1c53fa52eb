// Tables and JSON of the Query page: what is not a number, and answers of any size.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { becomes, browsing, query, serving, START, texts } from './harness.mjs';

const SPAN = { from: String(START), to: String(START + 60_000) };

const browser = browsing();
const server = serving(async () => {
  await server.importText(Object.entries({ a: 1, b: 'NaN', c: 2, d: '-Inf', e: '+Inf' }).map(([id, value]) => `odd{id="${id}"} ${value} ${START + 60_000}`));
});

test('NaN is last in either order', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'odd', view: 'table' }));
  const values = () => texts(page, '.table td.number');
  const head = page.getByRole('button', { name: 'Value' });
  await head.click();
  await becomes(values, ['+Inf', '2', '1', '-Inf', 'NaN'], page);
  await head.click();
  await becomes(values, ['-Inf', '1', '2', '+Inf', 'NaN'], page);
});

const SERIES = 60;
const SAMPLES = 10_001;

/** A page whose queries are answered by 600,060 samples. */
async function manySamples(view) {
  const page = await browser.open(`${server.address}#/queries`);
  const values = Array.from({ length: SAMPLES }, (_, at) => [START / 1000 + at, String(at)]);
  const result = Array.from({ length: SERIES }, (_, id) => ({ metric: { __name__: 'm', id: String(id) }, values }));
  const body = JSON.stringify({ status: 'success', data: { resultType: 'matrix', result } });
  for (const path of ['query', 'query_range']) await page.route(`**/api/v1/${path}`, (route) => route.fulfill({ contentType: 'application/json', body }));
  await page.goto(query(server, { ...SPAN, q: 'm[3h]', view }));
  return page;
}

async function saved(page, name) {
  await page.getByRole('button', { name: 'Download' }).click();
  const [file] = await Promise.all([page.waitForEvent('download'), page.locator('.panel button', { hasText: name }).first().click()]);
  return readFile(await file.path(), 'utf8');
}

test('a table has as many rows as browsers can scroll, and says so; the CSV has all', async () => {
  const page = await manySamples('table');
  await page.getByText(/The first 500.000 of 600.060 rows; Download has all/).waitFor();
  assert.equal(await page.locator('table').getAttribute('aria-rowcount'), '500001');
  await page.locator('.table').focus();
  await page.keyboard.press('End');
  // 49 series are whole in it, and 9,951 samples of the next.
  await becomes(async () => (await page.locator('.table tbody td.number').allTextContents()).at(-1), '9950', page);
  const lines = (await saved(page, 'CSV')).trim().split('\r\n');
  assert.equal(lines.length, 1 + SERIES * SAMPLES);
  assert.equal(lines.at(-1), `A,m,59,${START / 1000 + SAMPLES - 1},10000`);
});

test('JSON of any size is shown up to a limit and downloaded whole', async () => {
  const page = await manySamples('graph');
  await page.locator('.legend .name').first().waitFor();
  await page.evaluate(() => {
    // As with answers of gigabytes, in small.
    const { stringify } = JSON;
    JSON.stringify = (...given) => {
      const text = stringify(...given);
      if (text?.length > 2_000_000) throw new RangeError('Invalid string length');
      return text;
    };
  });
  await page.getByRole('tab', { name: 'JSON' }).click();
  await page.getByText(/The first 300.000 characters; Download has all/).waitFor();
  assert.match(await page.locator('.json').textContent(), /^\{\s+"resultType": "matrix",\s+"result": \[/);
  assert.equal((await page.locator('.json').textContent()).length, 300_000);
  const [{ query: text, data }] = JSON.parse(await saved(page, 'JSON'));
  assert.deepEqual([text, data.result.length, data.result.at(-1).values.at(-1)], ['m[3h]', SERIES, [START / 1000 + SAMPLES - 1, '10000']]);
});

test('an answer that cannot be drawn is an error of its page, and of no other', async () => {
  const page = await browser.open(`${server.address}#/queries`);
  const broken = { status: 'success', data: { resultType: 'matrix', result: null } };
  await page.route('**/api/v1/query_range', (route) => route.fulfill({ json: broken }), { times: 1 });
  await page.goto(query(server, { ...SPAN, q: 'odd' }));
  await page.locator('.notice.error', { hasText: 'this page cannot be drawn' }).waitFor();
  await page.getByRole('link', { name: 'Rules' }).click();
  await page.locator('.rules .notice.empty').waitFor();
  assert.equal(await page.locator('.notice.error').count(), 0);
});
