// One series: a page of samples that fails, hints for keys with signs of patterns, its rules.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, serving, START, texts } from './harness.mjs';

const LONG = 'long_v';

const browser = browsing();
const server = serving(async () => {
  await server.write(Array.from({ length: 15_000 }, (_, at) => `long v=${at} ${START + at * 1000}`));
  await server.redis(['TS.CREATE', 'a'], ['TS.CREATE', 'b'], ['TS.CREATERULE', 'a', 'b', 'AGGREGATION', 'avg', 60_000]);
});

const address = (parameters) => `${server.address}#/series?${new URLSearchParams(parameters)}`;

test('a later page of samples that fails shows no other one', async () => {
  const page = await browser.open(address({ key: LONG }));
  const next = page.getByRole('button', { name: 'Next page' });
  await next.waitFor();
  await page.route('**/status/series/samples?*', (route) => route.fulfill({ status: 503, json: { errorType: 'unavailable', error: 'too many requests' } }));
  await next.click();
  await page.locator('.samples .error', { hasText: 'too many requests' }).waitFor();
  assert.equal(await page.locator('.samples .table').count(), 0);
  await page.unroute('**/status/series/samples?*');
  await page.locator('.samples').getByRole('button', { name: 'Try again' }).click();
  await becomes(async () => (await texts(page, '.samples td.number'))[0], '10000', page);
});

test('the hint for permissions is a pattern of this key alone', async () => {
  const page = await browser.open(`${server.address}#/queries`);
  await page.route('**/status/series?*', (route) => route.fulfill({ status: 403, json: { errorType: 'forbidden', error: 'no permission' } }));
  for (const [key, pattern] of [['a*', '"a\\\\*"'], ['a[1]?', '"a\\\\[1\\\\]\\\\?"'], ['a\\xff*', '"a\\xff\\\\*"'], ['plain', 'plain']]) {
    await page.goto(address({ key }));
    await becomes(async () => (await texts(page, '.notice.error code'))[0]?.split('%R~')[1], pattern, page);
  }
});

test('rows of its rules are as high as those of its samples', async () => {
  const page = await browser.open(address({ key: 'a' }));
  const cell = page.getByRole('region', { name: 'Rules', exact: true }).locator('td').first();
  await cell.waitFor();
  assert.equal(Math.round((await cell.boundingBox()).height), 30);
});
