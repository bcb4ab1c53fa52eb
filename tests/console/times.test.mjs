// Times: milliseconds in either zone, clocks that change, keys of charts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, query, serving, START } from './harness.mjs';

const HOUR_MS = 3_600_000;
// Midnight in Berlin, the day before its clocks go forward and back.
const CHANGES = [Date.parse('2025-03-29T00:00+01:00'), Date.parse('2025-10-25T00:00+02:00')];

const browser = browsing();
const server = serving(async () => {
  for (const from_ms of CHANGES) await server.write(Array.from({ length: 75 }, (_, at) => `hours_bucket,le=1 v=${at} ${from_ms + at * HOUR_MS}`));
  await server.write(Array.from({ length: 21 }, (_, at) => `ms v=${at} ${START + at * 100}`));
  for (const time of [2000, 1000]) await server.write([`late v=1 ${time}`]);
});

const parameters = (page) => new URLSearchParams(page.url().split('?')[1] ?? '');
const range = (page) => ['from', 'to'].map((name) => Number(parameters(page).get(name)) - START);

test('a span of milliseconds is kept by the form of fixed times, in local time and UTC', async () => {
  const page = await browser.open(query(server, { q: 'ms_v', from: START + 100, to: START + 900, step: '100ms' }));
  const fix = async (from) => {
    await page.getByTitle('Time range').click();
    if (from) await page.locator('[name=from]').fill(from);
    await page.getByRole('button', { name: 'Show' }).click();
    await becomes(() => page.locator('.panel').count(), 0, page);
  };
  await fix();
  assert.deepEqual(range(page), [100, 900]);
  await fix('2026-01-01 01:00:00.250');
  assert.deepEqual(range(page), [250, 900]);
  await page.getByRole('button', { name: 'Times: local' }).click();
  await fix();
  assert.deepEqual(range(page), [250, 900]);
});

test('the axis of a heat map has round times on both sides of a change of the clocks', async () => {
  const page = await browser.open(`${server.address}#/queries`);
  await page.evaluate(() => {
    const { scale, fillText } = CanvasRenderingContext2D.prototype;
    Object.assign(CanvasRenderingContext2D.prototype, {
      scale(...given) { window.drawn = []; return scale.apply(this, given); },
      fillText(text, ...given) { window.drawn.push(text); return fillText.call(this, text, ...given); },
    });
  });
  const drawn = () => page.evaluate(() => window.drawn?.filter((text) => /^\d\d:\d\d$/.test(text)));
  for (const from of CHANGES) {
    await page.evaluate((hash) => { location.hash = hash; }, new URL(query(server, { q: 'hours_bucket_v', heat: 'on', from, to: from + 74 * HOUR_MS, step: '1h' })).hash);
    await becomes(drawn, ['00:00', '12:00', '00:00', '12:00', '00:00', '12:00', '00:00'], page);
  }
});

/** What a page leaves to the browser, of these keys. */
async function left(page, element, keys) {
  await element.focus();
  const address = page.url();
  await page.evaluate(() => {
    window.left = [];
    addEventListener('keydown', ({ key, defaultPrevented }) => { if (!defaultPrevented) window.left.push(key); });
  });
  for (const key of keys) await page.keyboard.press(key);
  assert.equal(page.url(), address);
  return page.evaluate(() => window.left.filter((key) => key.length === 1 || key.startsWith('Arrow')));
}

test('keys of the browser do nothing in charts and heat maps', async () => {
  const keys = ['Control+-', 'Control+0', 'Meta++', 'Alt+ArrowLeft'];
  const wanted = ['-', '0', '+', 'ArrowLeft'];
  const chart = await browser.open(query(server, { q: 'ms_v', from: START, to: START + 2000, step: '100ms' }));
  await chart.locator('.legend .name').first().waitFor();
  assert.deepEqual(await left(chart, chart.locator('.chart'), keys), wanted);
  const [from] = CHANGES;
  const heat = await browser.open(query(server, { q: 'hours_bucket_v', heat: 'on', from, to: from + 74 * HOUR_MS, step: '1h' }));
  assert.deepEqual(await left(heat, heat.getByRole('application'), keys), wanted);
  const late = await browser.open(`${server.address}#/late`);
  assert.deepEqual(await left(late, late.locator('.times .chart').first(), ['Alt+ArrowLeft', 'Meta+ArrowRight']), ['ArrowLeft', 'ArrowRight']);
});

test('keys that are pressed before an answer is there add up', async () => {
  const hold = async (page) => {
    let release;
    const held = new Promise((resolve) => { release = resolve; });
    await page.route('**/api/v1/query_range', async (route) => {
      await held;
      // Most are given up for the next one.
      await route.continue().catch(() => {});
    });
    return release;
  };
  const address = { from: START, to: START + 1600, step: '100ms' };
  const page = await browser.open(query(server, { q: 'ms_v', ...address }));
  await page.locator('.legend .name').first().waitFor();
  const release = await hold(page);
  await page.locator('.chart').focus();
  for (const key of ['+', '+', 'ArrowRight']) await page.keyboard.press(key);
  assert.deepEqual(range(page), [700, 1100]);
  release();
  await becomes(() => page.locator('.chart').evaluate((chart) => Number(chart.dataset.from)), START + 700, page);
  const [from] = CHANGES;
  await page.goto(query(server, { q: 'hours_bucket_v', heat: 'on', from, to: from + 64 * HOUR_MS, step: '1h' }));
  const map = page.getByRole('application');
  await map.focus();
  const again = await hold(page);
  for (const key of ['+', '+']) await page.keyboard.press(key);
  assert.deepEqual(['from', 'to'].map((name) => (Number(parameters(page).get(name)) - from) / HOUR_MS), [24, 40]);
  again();
});

test('lengths read as they were chosen', async () => {
  const page = await browser.open(query(server, { q: 'ms_v', range: '30d' }));
  for (const length of ['30d', '365d', '90d', '1w', '36h']) {
    await page.evaluate((range) => { location.hash = `#/query?q=ms_v&range=${range}`; }, length);
    await becomes(async () => (await page.getByTitle('Time range').textContent()).trim(), `Last ${length === '36h' ? '1d12h' : length}`, page);
  }
});
