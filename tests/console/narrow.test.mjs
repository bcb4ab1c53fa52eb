// What fits the window: numbers of tables on narrow screens, the height of the chart, and what is said
// beside the pointer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, parameters, query, serving, START, texts } from './harness.mjs';

const SPAN = { from: String(START), to: String(START + 600_000), step: '10s' };
const NARROW = { viewport: { width: 420, height: 800 } };
const KEY = 'building:7:floor:12:room:3:temperature';

const browser = browsing();
const server = serving(async () => {
  const now = Date.now();
  await server.redis(['TS.CREATE', KEY], ['TS.CREATE', `${KEY}:hour`], ['TS.CREATERULE', KEY, `${KEY}:hour`, 'AGGREGATION', 'avg', 3_600_000],
    ['TS.ADD', KEY, now, 1], ['TS.ADD', KEY, now - 90_000, 1]);
  await server.write(Array.from({ length: 61 }, (_, at) => [['north', 23], ['south', 13]].map(([site, temp]) => `room,site=${site} temp=${temp} ${START + at * 10_000}`)).flat());
});

const hint = (page) => page.locator('.sideways');

test('numbers are in sight at 420 pixels, and a hint tells of the columns that are not', async () => {
  for (const address of ['compaction', 'late?by=metric', 'late', `query?${new URLSearchParams({ ...SPAN, q: 'room_temp', view: 'table' })}`, `series?key=${KEY}`]) {
    const page = await browser.open(`${server.address}#/${address}`, NARROW);
    const number = page.locator('.table td.number').first();
    await number.waitFor();
    await number.scrollIntoViewIfNeeded();
    const { x, width } = await number.boundingBox();
    assert.ok(x >= 0 && x + width <= NARROW.viewport.width, `${address}: a number lies from ${x} to ${x + width}`);
    await hint(page).first().waitFor();
    assert.match((await texts(page, '.sideways'))[0], /^Scroll the table sideways for all \d+ columns\.$/);
    // The first column stays where it is.
    const [first] = await page.locator('.table.cut').first().evaluateAll(([table]) => {
      table.scrollLeft = 1000;
      return [table.querySelector('td').getBoundingClientRect().left - table.getBoundingClientRect().left];
    });
    assert.ok(Math.abs(first) <= 2, `${address}: the first column is ${first} px off`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), address);
    await page.context().close();
  }
});

test('where all columns are in sight, no hint is there', async () => {
  const page = await browser.open(`${server.address}#/compaction`, { viewport: { width: 1400, height: 800 } });
  await page.locator('.table td.number').first().waitFor();
  assert.equal(await hint(page).count(), 0);
});

test('the chart takes the height of the window', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'room_temp' }), { viewport: { width: 1200, height: 1300 } });
  await page.locator('.legend .name').first().waitFor();
  const height = async () => (await page.locator('.chart').boundingBox()).height;
  const high = await height();
  assert.ok(high > 800, `${high} of 1300`);
  const { y, height: of } = await page.locator('.legend').boundingBox();
  assert.ok(y + of <= 1300, 'the legend is in sight');
  await page.setViewportSize({ width: 1200, height: 900 });
  await becomes(height, high - 400, page);
  await page.setViewportSize({ width: 1200, height: 300 });
  await becomes(height, 280, page);
});

test('the pointer shows the nearest line', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'room_temp' }));
  await page.locator('.legend .name').first().waitFor();
  const { x, y, width, height } = await page.locator('.u-over').boundingBox();
  const tip = () => texts(page, '.tip');
  const said = (site, value, clock) => [` room_temp{site="${site}"} ${value}2026-01-01 01:${clock}:00`];
  await page.mouse.move(x + width / 2, y + 40);
  await becomes(tip, said('north', 23, '05'), page);
  await page.mouse.move(x + width * 0.1, y + height - 40);
  await becomes(tip, said('south', 13, '01'), page);
  const box = await page.locator('.tip').boundingBox();
  assert.ok(box.x >= x && box.x + box.width <= x + width, 'the text is in the chart');
  await page.locator('.legend button').nth(1).click();
  await becomes(async () => parameters(page).has('hide'), true, page);
  await page.mouse.move(x + width / 2, y + height - 40);
  await becomes(async () => (await tip()).length, 1, page);
  await page.mouse.move(2, 2);
  await becomes(tip, [], page);
});
