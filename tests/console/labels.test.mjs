// Labels that have the names of what every object of JavaScript inherits.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { becomes, browsing, query, serving, START, texts } from './harness.mjs';

const SPAN = { from: String(START), to: String(START + 60_000) };

const browser = browsing();
const server = serving(async () => {
  const lines = ['pp{__proto__="evil"} 1', 'pp{constructor="c"} 2', 'pp{a="b"} 3', 'alone{a="b"} 1', 'alone{a="b",constructor="c",__proto__="p"} 2'];
  await server.importText(lines.flatMap((line) => [START, START + 60_000].map((time) => `${line} ${time}`)));
});

test('the table and the CSV have their values, and charts are drawn afterwards', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'pp', view: 'table' }));
  await becomes(async () => (await texts(page, '.table tbody tr')).sort(), ['ppb3', 'ppc2', 'ppevil1'], page);
  await page.getByRole('button', { name: 'Download' }).click();
  const [file] = await Promise.all([page.waitForEvent('download'), page.locator('.panel button', { hasText: 'CSV' }).first().click()]);
  const lines = (await readFile(await file.path(), 'utf8')).trim().split('\r\n');
  const end = (START + 60_000) / 1000;
  assert.equal(lines[0], 'query,__name__,__proto__,a,constructor,timestamp,value');
  assert.deepEqual(lines.slice(1).sort(), [`A,pp,,,c,${end},2`, `A,pp,,b,,${end},3`, `A,pp,evil,,,${end},1`]);
  await page.getByRole('tab', { name: 'Graph' }).click();
  await becomes(async () => (await texts(page, '.legend .name')).length, 3, page);
  await page.locator('.chart canvas').waitFor();
});

test('a series without them is told from one that has them', async () => {
  const page = await browser.open(`${server.address}#/series?${new URLSearchParams({ match: 'alone{a="b"}' })}`);
  const link = page.locator('a.button', { hasText: 'Query' });
  await link.waitFor();
  const selector = new URLSearchParams((await link.getAttribute('href')).split('?')[1]).get('q');
  assert.match(selector, /^alone\{a="b", /);
  assert.match(selector, /constructor=""/);
  assert.match(selector, /__proto__=""/);
});

test('Explain finds the labels that two sides do not share', async () => {
  const page = await browser.open(`${server.address}#/explain?${new URLSearchParams({ ...SPAN, q: 'pp{a="b"} + pp{constructor="c"}' })}`);
  await page.locator('.differences').waitFor();
  const row = page.locator('.differences tbody tr', { has: page.locator('[scope=row]', { hasText: 'constructor' }) });
  assert.deepEqual(await row.locator('td').allTextContents(), ['none', '"c"', 'on the right only']);
});
