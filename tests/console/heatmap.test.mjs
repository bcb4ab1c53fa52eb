// Histograms of the Query page as a heat map.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, parameters, query, serving, START, texts } from './harness.mjs';

// Ten minutes, a value every minute.
const SPAN = { from: String(START), to: String(START + 600_000), step: '1m' };
const HOSTILE = '<img src=x onerror=alert(1)>"\\';
// In the order of their texts 10 comes before 2.5, and +Inf first.
const LES = ['+Inf', '0.1', '0.5', '10', '2.5'];
const COUNTS = { 0.1: 1, 0.5: 4, 2.5: 4, 10: 6, '+Inf': 10 };
const LEFT_PX = 64;

async function fill() {
  const lines = [];
  for (let minute = -10; minute <= 10; minute++) {
    const time = START + minute * 60_000;
    for (const le of LES) {
      // Of a the second bucket has no number at last, of the other it is once less than the first.
      const isGap = le === '0.5' && minute >= 8;
      lines.push(`req_bucket{inst="a",le="${le}"} ${isGap ? 'NaN' : COUNTS[le]} ${time}`);
      const isLess = le === '0.5' && minute === 3;
      lines.push(`req_bucket{inst=${JSON.stringify(HOSTILE)},le="${le}"} ${isLess ? 0 : 10 * COUNTS[le]} ${time}`);
      lines.push(`slow_bucket{le="${le}"} ${(minute + 10) * 0.1 * COUNTS[le]} ${time}`);
    }
    lines.push(`other_bucket{inst="c",le="1"} 1 ${time}`, `other_bucket{inst="d",le="2"} 1 ${time}`);
    lines.push(`plain{le="no number"} 1 ${time}`);
  }
  await server.importText(lines);
}

const browser = browsing();
const server = serving(fill);

const said = async (page) => (await texts(page, '.heat .said'))[0];
const map = (page) => page.getByRole('application');
const toggle = (page) => page.getByRole('button', { name: 'Heat map' });

/** What the map says of the bands of a column counted from the end, by the keyboard. */
async function bands(page, back, many) {
  await map(page).focus();
  await page.keyboard.press('Escape');
  for (let turn = 0; turn <= back; turn++) await page.keyboard.press('ArrowLeft');
  const found = [];
  for (let band = 0; band < many; band++) {
    found.push(await said(page));
    await page.keyboard.press('ArrowUp');
  }
  return found.map((text) => text.replace(/^.*?, /, ''));
}

/** The place of a cell of a map with so many columns and bands. */
async function place(page, [column, columns], [band, many]) {
  const { x, y, width, height } = await map(page).boundingBox();
  return [x + LEFT_PX + ((width - LEFT_PX) * (column + 0.5)) / columns, y + (height - 36) * (1 - (band + 0.5) / many)];
}

/** The colour of a cell. */
async function colour(page, column, band) {
  const [x, y] = await place(page, column, band);
  const box = await map(page).boundingBox();
  return page.locator('.heatmap canvas').evaluate((canvas, at) => [...canvas.getContext('2d').getImageData(...at, 1, 1).data], [Math.round(x - box.x), Math.round(y - box.y)]);
}

test('a histogram becomes bands in the order of their bounds', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'req_bucket{inst="a"}' }));
  await toggle(page).click();
  await map(page).waitFor();
  assert.equal(parameters(page).get('heat'), 'on');
  assert.equal(await page.getByRole('button', { name: 'Stacked' }).count(), 0);
  assert.deepEqual(await bands(page, 4, 6), ['up to 0.1: 1', '0.1 to 0.5: 3', '0.5 to 2.5: 0', '2.5 to 10: 2', 'more than 10: 4', 'more than 10: 4']);
  // Without the second bucket nothing is known of its band, nor of the next.
  assert.deepEqual(await bands(page, 0, 5), ['up to 0.1: 1', '0.1 to 0.5: no value', '0.5 to 2.5: no value', '2.5 to 10: 2', 'more than 10: 4']);
  await page.mouse.move(...await place(page, [2, 11], [1, 5]));
  await becomes(() => said(page), '2026-01-01 01:02:00, 0.1 to 0.5: 3', page);
  await page.mouse.move(5, 5);
  await becomes(() => said(page), 'The pointer, or the arrow keys in the map, show values.', page);
  assert.deepEqual(await colour(page, [2, 11], [4, 5]), [68, 1, 84, 255]);
  assert.equal((await colour(page, [10, 11], [1, 5]))[3], 0);
  assert.equal((await page.locator('.scale').textContent()).trim(), '014in each bucket, logarithmic; nothing where there is no value');
  assert.equal(await page.locator('.heat .remarks').count(), 0);
});

test('several histograms are summed by le, or one is chosen, also by a link', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'req_bucket', heat: 'on' }));
  const choice = page.getByRole('combobox', { name: 'Histogram' });
  const name = `A: req_bucket{inst=${JSON.stringify(HOSTILE)}}`;
  await becomes(() => choice.locator('option').allTextContents(), ['A: all 2, summed by le', name, 'A: req_bucket{inst="a"}'], page);
  assert.deepEqual(await bands(page, 4, 5), ['up to 0.1: 11', '0.1 to 0.5: 33', '0.5 to 2.5: 0', '2.5 to 10: 22', 'more than 10: 44']);
  await choice.selectOption(name);
  const warning = ['warning1 cell is shown as 0: its bucket counts less than one below it.'];
  await becomes(() => texts(page, '.heat .remarks li'), warning, page);
  const other = await browser.open(page.url());
  await becomes(() => texts(other, '.heat .remarks li'), warning, other);
  assert.deepEqual(await bands(other, 7, 5), ['up to 0.1: 10', '0.1 to 0.5: 0', '0.5 to 2.5: 30', '2.5 to 10: 20', 'more than 10: 40']);
  assert.equal(await other.locator('.heat img').count(), 0);
});

test('rates by le: rounding is no warning, dragging zooms, a double click goes back', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'sum by (le) (rate(slow_bucket[5m])) * 60', heat: 'on' }));
  await map(page).waitFor();
  assert.deepEqual((await bands(page, 0, 5)).map((text) => text.replace(/\d{5,}\d*/, '')), ['up to 0.1: 0.1', '0.1 to 0.5: 0.3', '0.5 to 2.5: 0', '2.5 to 10: 0.2', 'more than 10: 0.4']);
  assert.equal(await page.locator('.heat .remarks').count(), 0);
  await page.mouse.move(...await place(page, [2, 11], [1, 5]));
  await page.mouse.down();
  await page.mouse.move(...await place(page, [6, 11], [1, 5]), { steps: 4 });
  await page.mouse.up();
  const minutes = () => ['from', 'to'].map((name) => Math.round((Number(parameters(page).get(name)) - START) / 60_000));
  await becomes(async () => minutes(), [2, 6], page);
  await map(page).focus();
  // What is drawn is there after the address.
  await becomes(async () => page.keyboard.press('Home').then(() => said(page)).then((text) => / 01:0[23]/.test(text)), true, page);
  await page.keyboard.press('-');
  await becomes(async () => minutes(), [0, 8], page);
  await page.keyboard.press('0');
  await becomes(async () => minutes(), [2, 6], page);
  await map(page).dblclick();
  await becomes(async () => minutes(), [0, 10], page);
});

test('histograms of other buckets are warned about, and other series say what they need', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'other_bucket', heat: 'on' }));
  await page.getByText('do not have the same buckets').waitFor();
  await page.goto(query(server, { ...SPAN, q: 'plain', heat: 'on' }));
  await page.getByText('A heat map needs series with the label le').waitFor();
  await becomes(() => texts(page, '.legend .name'), ['plain{le="no number"}'], page);
  await toggle(page).focus();
  await page.keyboard.press('Enter');
  await becomes(() => toggle(page).count(), 0, page);
  await page.goto(query(server, { ...SPAN, q: 'req_bucket[', heat: 'on' }));
  await page.locator('.said .error').waitFor();
});
