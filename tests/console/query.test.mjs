// The Query page, as somebody sees it who uses it.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { becomes, BLUE, browsing, complete, focused, listed, ORANGE, parameters, pixels, query, serving, START, tabTo, texts } from './harness.mjs';

// Ten minutes of two rooms, a value every ten seconds.
const SPAN = { from: String(START), to: String(START + 600_000) };

const browser = browsing();
const server = serving(async () => {
  const lines = [];
  for (let at = 0; at <= 600; at += 10) {
    lines.push(`room,site=north temp=${20 + at / 100} ${START + at * 1000}`);
    lines.push(`room,site=south temp=${10 + at / 100} ${START + at * 1000}`);
  }
  await server.write(lines);
});

const legend = (page) => texts(page, '.legend .name');
const LEGEND = ['room_temp{site="north"}', 'room_temp{site="south"}'];

test('typing completes names of this server, Enter draws', async () => {
  const page = await browser.open(query(server, SPAN));
  await page.getByLabel('Query A').locator('.cm-content').click();
  await page.keyboard.type('roo');
  await complete(page, 'room_temp');
  await becomes(() => texts(page, '.cm-line'), ['room_temp'], page);
  await page.keyboard.type('{');
  await listed(page, 'site').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Delete');
  await page.keyboard.press('Backspace');
  await page.keyboard.press('Enter');
  await becomes(() => legend(page), LEGEND, page);
  assert.equal(parameters(page).get('q'), 'room_temp');
  assert.ok(await pixels(page, BLUE) > 100 && await pixels(page, ORANGE) > 100);
  assert.match((await texts(page, '.figures'))[0], /2 series.*122 samples decoded.*0 late merged/);
});

test('on a slow machine no letter is lost', async () => {
  const page = await browser.open(query(server, SPAN));
  await page.getByLabel('Query A').locator('.cm-content').click();
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 20 });
  await page.keyboard.type('1 + 2 + 3 + 4 + 5 + 6');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 1 });
  await becomes(() => texts(page, '.cm-line'), ['1 + 2 + 3 + 4 + 5 + 6'], page);
  await becomes(async () => parameters(page).get('q'), '1 + 2 + 3 + 4 + 5 + 6', page);
});

test('an error is shown at its place, a remark at its query', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'sum(room_temp) + rate(room_temp)' }));
  const error = page.locator('.said .error');
  await error.waitFor();
  assert.match(await error.textContent(), /1:23: parse error: expected type range vector/);
  await becomes(() => texts(page, '.cm-lintRange-error'), ['room_temp'], page);
  await page.goto(query(server, { ...SPAN, q: 'rate(room_temp[1m])' }));
  await page.locator('.remarks .info').waitFor();
  assert.match((await texts(page, '.remarks .info'))[0], /metric might not be a counter/);
  await becomes(() => page.locator('.cm-lintRange-error').count(), 0, page);
});

test('dragging zooms, a double click goes back, Shift pans', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'room_temp' }));
  await page.locator('.legend .name').first().waitFor();
  const box = await page.locator('.u-over').boundingBox();
  const [left, y] = [box.x, box.y + 100];
  const drag = async (from, to) => {
    await page.mouse.move(left + box.width * from, y);
    await page.mouse.down();
    await page.mouse.move(left + box.width * to, y, { steps: 5 });
    await page.mouse.up();
  };
  const shown = () => ['from', 'to'].map((name) => Math.round((Number(parameters(page).get(name)) - START) / 30_000));
  // The address changes first, what is drawn when the answer is there: only that can be dragged.
  const drawn = async () => {
    const times = await page.locator('.chart').evaluate((chart) => [chart.dataset.from, chart.dataset.to]);
    return times.map((time) => Math.round((Number(time) - START) / 30_000));
  };
  await becomes(drawn, [0, 20], page);
  await drag(0.25, 0.75);
  await becomes(async () => shown(), [5, 15], page);
  await becomes(drawn, [5, 15], page);
  await page.keyboard.down('Shift');
  await drag(0.8, 0.3);
  await page.keyboard.up('Shift');
  await becomes(async () => shown(), [10, 20], page);
  await page.locator('.u-over').dblclick({ position: { x: 300, y: 100 } });
  await page.locator('.u-over').dblclick({ position: { x: 300, y: 100 } });
  await becomes(async () => shown(), [0, 20], page);
});

test('the legend rounds only what is long, and has all digits below the pointer', async () => {
  await server.write([`digits,k=a v=100000.5 ${START}`, `digits,k=b v=123456789.123456 ${START}`]);
  const page = await browser.open(query(server, { from: START - 60_000, to: START + 60_000, q: 'digits_v', step: '10s' }));
  await becomes(() => texts(page, '.legend .value'), ['100000.5', '123.457M'], page);
  await page.getByTitle('123456789.123456', { exact: true }).waitFor();
});

test('the legend shows values at the cursor and series alone', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'room_temp', step: '10s' }));
  await page.locator('.legend .name').first().waitFor();
  const box = await page.locator('.u-over').boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 50);
  await becomes(() => texts(page, '.legend .value'), ['23', '13'], page);
  assert.deepEqual(await texts(page, '.legend .at'), ['2026-01-01 01:05:00']);
  await page.locator('.legend button').first().click();
  await becomes(() => pixels(page, ORANGE), 0, page);
  assert.ok(await pixels(page, BLUE) > 100);
  await page.locator('.legend button').first().click();
  await page.waitForFunction(() => !location.hash.includes('hide='));
  await page.getByRole('button', { name: 'Stacked' }).click();
  await becomes(() => page.getByRole('button', { name: 'Stacked' }).getAttribute('aria-pressed'), 'true', page);
  await page.getByRole('button', { name: 'Logarithmic' }).click();
  await becomes(() => page.getByRole('button', { name: 'Stacked' }).getAttribute('aria-pressed'), 'false', page);
});

test('the table is sorted by a click, and JSON is what was answered', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'room_temp', view: 'table' }));
  const cells = () => texts(page, '.table tbody td');
  await becomes(cells, ['room_temp', 'north', '26', 'room_temp', 'south', '16'], page);
  await page.getByRole('button', { name: 'Value' }).click();
  await page.getByRole('button', { name: 'Value' }).click();
  await becomes(cells, ['room_temp', 'south', '16', 'room_temp', 'north', '26'], page);
  await page.getByRole('tab', { name: 'JSON' }).click();
  await page.locator('.json').waitFor();
  await page.waitForFunction(() => document.querySelector('.json').textContent.includes('"matrix"'));
  const { result } = JSON.parse(await page.locator('.json').textContent());
  assert.deepEqual(result.map((one) => one.metric.site), ['north', 'south']);
});

test('what is shown and what is stored are downloaded', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'max(room_temp) by (site)', view: 'table' }));
  await page.locator('.table td').first().waitFor();
  const file = async (name) => {
    await page.getByRole('button', { name: 'Download' }).click();
    const [download] = await Promise.all([page.waitForEvent('download'), page.locator('.panel button', { hasText: name }).first().click()]);
    return readFile(await download.path());
  };
  const end = (START + 600_000) / 1000;
  assert.equal((await file('CSV')).toString(), `query,site,timestamp,value\r\nA,north,${end},26\r\nA,south,${end},16\r\n`);
  const [{ query: text, data }] = JSON.parse(await file('JSON'));
  assert.deepEqual([text, data.result.length], ['max(room_temp) by (site)', 2]);
  const stored = (await file('Samples as CSV')).toString().trim().split('\n');
  assert.equal(stored.length, 1 + 122);
  assert.equal((await file('Samples as Arrow')).subarray(0, 4).readUInt32LE(), 0xffffffff);
});

test('a link shows the same in another browser', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'room_temp' }));
  await page.locator('.legend .name').first().waitFor();
  await page.getByRole('button', { name: 'Duplicate (A)' }).click();
  await page.getByRole('button', { name: '+ Add query' }).click();
  await page.getByLabel('Query C').locator('.cm-content').click();
  await page.keyboard.insertText('sum(room_temp)');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Disable (B)' }).click();
  await page.getByRole('button', { name: 'Points' }).click();
  await page.getByRole('textbox', { name: 'Step' }).fill('20s');
  await page.keyboard.press('Enter');
  const names = [...LEGEND.map((name) => `A ${name}`), 'C {}'];
  await becomes(() => legend(page), names, page);
  await page.locator('.legend button').nth(1).click({ modifiers: ['Control'] });
  const look = async (one) => ({
    legend: await legend(one),
    off: await one.locator('.legend [aria-pressed=false] .name').allTextContents(),
    queries: await texts(one, '.cm-line'),
    step: await one.getByRole('textbox', { name: 'Step' }).inputValue(),
    disabled: await one.locator('.query.off .letter').allTextContents(),
    points: await one.getByRole('button', { name: 'Points' }).getAttribute('aria-pressed'),
  });
  const wanted = {
    legend: names, off: [names[1]], queries: ['room_temp', 'room_temp', 'sum(room_temp)'], step: '20s', disabled: ['B'], points: 'true',
  };
  await becomes(() => look(page), wanted, page);
  const other = await browser.open(page.url());
  await becomes(() => look(other), wanted, other);
});

test('ranges are chosen in the zone that is shown', async () => {
  const page = await browser.open(query(server, { q: 'room_temp', range: '5m' }));
  await page.getByText('No samples').waitFor();
  const choose = async () => {
    await page.getByTitle('Time range').click();
    await page.locator('[name=from]').fill('2026-01-01 00:00');
    await page.locator('[name=to]').fill('2026-01-01 00:10:00');
    await page.keyboard.press('Enter');
  };
  await choose();
  await becomes(async () => parameters(page).get('from'), String(START - 3_600_000), page);
  await page.getByRole('button', { name: 'Times: local' }).click();
  await choose();
  await becomes(async () => parameters(page).get('from'), String(START), page);
  await becomes(() => legend(page), LEGEND, page);
});

test('where nothing matches, the time that has samples is offered', async () => {
  const page = await browser.open(query(server, { q: 'room_temp', range: '5m' }));
  await page.getByRole('button', { name: 'Show all the time that has samples' }).click();
  await becomes(() => legend(page), LEGEND, page);
});

test('the time that has samples is that of the query, and its end has the newest one', async () => {
  const newest = START + 40 * 86_400_000 + 12_345_678;
  const short = [START + 1003, START + 777_777];
  await server.write([`newest,of=long v=1 ${START}`, `newest,of=long v=23 ${newest - 600_000}`, `newest,of=long v=22 ${newest}`,
    `newest,of=short v=23 ${short[0]}`, `newest,of=short v=22 ${short[1]}`]);
  // Steps of the second are longer than a sample counts for.
  for (const [of, times] of [['short', short], ['long', [START, newest]]]) {
    const page = await browser.open(query(server, { q: `newest_v{of="${of}"}`, range: '5m' }));
    await page.getByRole('button', { name: 'Show all the time that has samples' }).click();
    await becomes(() => texts(page, '.legend .value'), ['22'], page);
    assert.deepEqual(['from', 'to'].map((name) => Number(parameters(page).get(name))), times);
  }
});

test('no time is offered for names that do not exist, nor where all samples are shown', async () => {
  const page = await browser.open(query(server, { q: 'rooom_temp', range: '5m' }));
  const button = page.getByRole('button', { name: 'Show all the time that has samples' });
  const said = async (text) => {
    await page.locator('.notice.empty', { hasText: text }).waitFor();
    assert.equal(await button.count(), 0);
  };
  await said('No series matches rooom_temp.');
  await page.goto(query(server, { q: 'room_temp / rooom_temp + rooom_humidity', ...SPAN }));
  await said('No series match rooom_temp, rooom_humidity.');
  await page.goto(query(server, { q: 'room_temp > 100', ...SPAN }));
  const known = page.waitForResponse((response) => response.url().includes('status/tsdb'));
  await page.reload();
  await known;
  await said('No samples');
});

test('the history and saved queries come back', async () => {
  const page = await browser.open(query(server, SPAN));
  await page.getByLabel('Query A').locator('.cm-content').click();
  await page.keyboard.insertText('max(room_temp)');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await page.locator('.legend .name').first().waitFor();
  await page.getByRole('button', { name: 'Saved' }).click();
  await page.getByPlaceholder('Name for what is shown').fill('warmest');
  await page.keyboard.press('Enter');
  await page.locator('.panel .list button', { hasText: 'warmest' }).waitFor();
  const { origin } = new URL(page.url());
  await page.goto('about:blank');
  await page.goto(`${origin}/`);
  await page.getByText('No query yet').waitFor();
  await page.getByRole('button', { name: 'History' }).click();
  await page.locator('.panel code', { hasText: 'max(room_temp)' }).click();
  await becomes(() => texts(page, '.cm-line'), ['max(room_temp)'], page);
  await page.getByRole('button', { name: 'Saved' }).click();
  await page.locator('.panel .list button', { hasText: 'warmest' }).click();
  await becomes(async () => parameters(page).get('from'), SPAN.from, page);
  await becomes(() => legend(page), ['{}'], page);
});

test('everything can be done with the keyboard', async () => {
  const page = await browser.open(query(server, SPAN));
  await page.getByText('No query yet').waitFor();
  await tabTo(page, 'Query A');
  await page.keyboard.insertText('room_temp');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await becomes(() => legend(page), LEGEND, page);
  await tabTo(page, '2 series from');
  await page.keyboard.press('+');
  await becomes(async () => parameters(page).get('from'), String(START + 150_000), page);
  await page.keyboard.press('0');
  await becomes(async () => parameters(page).get('from'), SPAN.from, page);
  await tabTo(page, '2026-01-01');
  await page.keyboard.press('Enter');
  await tabTo(page, '12h');
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.panel').count(), 0);
  assert.ok((await focused(page)).startsWith('2026-01-01'));
  await tabTo(page, 'Graph');
  await page.keyboard.press('ArrowRight');
  await page.locator('.table td').first().waitFor();
});

test('lengths read as they are chosen', async () => {
  const page = await browser.open(query(server, {}));
  const picker = page.getByTitle('Time range', { exact: true });
  for (const length of ['30d', '90d', '365d', '1w', '12h']) {
    await picker.click();
    await page.locator('.lengths').getByRole('button', { name: length, exact: true }).click();
    await becomes(() => picker.textContent(), `Last ${length}`, page);
    assert.equal(parameters(page).get('range'), length);
  }
});

test('where steps are too far apart for the samples, the page says what to ask', async () => {
  // An hour beside the steps of 12 h.
  await server.write([`sparse v=1 ${START + 3_600_000}`]);
  const [from, to] = [-45, 45].map((days) => START + days * 86_400_000);
  const page = await browser.open(query(server, { q: 'sparse_v', from, to, step: '12h' }));
  await page.getByText('The steps of 12h are farther apart than the 5m that a sample counts for').waitFor();
  assert.equal(await page.locator('.notice code').textContent(), 'last_over_time(x[12h])');
  await page.goto(query(server, { q: 'last_over_time(sparse_v[12h])', from, to, step: '12h' }));
  await becomes(() => legend(page), ['sparse_v'], page);
});
