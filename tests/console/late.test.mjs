// The Late page: a server that has seen known late samples by two protocols, one that has seen none,
// and one that refuses.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, parameters, plain, plainTexts, Server, serving, texts } from './harness.mjs';

const HOSTILE = '<img src=x onerror="window.hacked=1">';
const late = (server, parameters = {}) => `${server.address}#/late?${new URLSearchParams({ refresh: 'off', ...parameters })}`;
/** Cells of the first table's rows. */
const rows = async (page) => {
  const found = await page.locator('.table tbody tr').all();
  return Promise.all(found.map((row) => row.locator('td').allTextContents()));
};
const figures = (page) => plainTexts(page, '.figure-list dd');

/** 96 samples in order and 4 late ones by InfluxDB lines; 99 in order and a late one by Prometheus' text. */
async function fill(now) {
  const influx = Array.from({ length: 96 }, (_, at) => `room,site=north temp=1 ${now - 100 + at}`);
  for (const age of [1000, 2000, 4000, 60_000]) influx.push(`room,site=north temp=1 ${now - 5 - age}`);
  await server.write(influx);
  const escaped = JSON.stringify(HOSTILE);
  const text = Array.from({ length: 99 }, (_, at) => `{${escaped},a="b"} 1 ${now - 99 + at}`);
  text.push(`{${escaped},a="b"} 1 ${now - 1 - 30_000}`);
  await server.importText(text);
}

const browser = browsing();
const server = serving(() => fill(Date.now()));

test('share, ages and delays of all and of one protocol', async () => {
  const page = await browser.open(late(server));
  await becomes(() => figures(page).then((all) => all.slice(0, 1)), ['2.5 %5 of 200 samples'], page);
  assert.equal((await figures(page))[4], '1mexact');
  const delays = await plainTexts(page, '.delays li');
  // 198 of 200 have come when the two oldest are missing: those of 30 s and of 60 s.
  assert.match(delays[0], /^99 % of samples have come after 4\.\d*s: write offset 5s\.$/);
  assert.match(delays[1], /^99.9 % of samples have come after 1m: write offset 1m\.$/);
  await page.getByRole('link', { name: 'influx_http' }).click();
  await becomes(() => figures(page).then((all) => all.slice(0, 1)), ['4 %4 of 100 samples'], page);
  assert.equal(parameters(page).get('protocol'), 'influx_http');
  await page.getByRole('combobox', { name: 'Protocol' }).selectOption('');
  await becomes(() => figures(page).then((all) => all.slice(0, 1)), ['2.5 %5 of 200 samples'], page);
});

test('rows by protocol, metric and sender, sorted, and kept in the address', async () => {
  const page = await browser.open(late(server));
  const first = async () => (await rows(page)).map((cells) => cells.slice(0, 3).map(plain));
  await becomes(first, [['influx_http', '100', '4'], ['prometheus_text', '100', '1']], page);
  await page.getByRole('button', { name: 'Late' }).click();
  await becomes(first, [['prometheus_text', '100', '1'], ['influx_http', '100', '4']], page);
  await page.getByRole('tab', { name: 'By metric' }).click();
  await becomes(first, [['room_temp', '4', '80 %'], [HOSTILE, '1', '20 %']], page);
  await page.getByRole('button', { name: 'Oldest' }).click();
  await page.getByRole('button', { name: 'Oldest' }).click();
  await becomes(first, [[HOSTILE, '1', '20 %'], ['room_temp', '4', '80 %']], page);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  const other = await browser.open(page.url());
  await becomes(() => rows(other).then((all) => all.map(([name]) => name)), [HOSTILE, 'room_temp'], other);
  await page.getByRole('tab', { name: 'By sender' }).click();
  await becomes(first, [['127.0.0.1', 'default', '5']], page);
});

test('rows by the label that the server counts by, which is chosen while it runs', async () => {
  const other = await Server.begin('--wal', 'off');
  try {
    const page = await browser.open(late(other, { by: 'label' }));
    await page.getByRole('alert').getByText('late samples are counted by no label').waitFor();
    await other.redis(['CONFIG', 'SET', 'lateness-label', 'site']);
    const now = Date.now();
    const lines = ['north', 'south'].map((site) => `room,site=${site} temp=1 ${now}`);
    await other.write([...lines, `room,site=north temp=1 ${now - 1000}`, `room,site=north temp=1 ${now - 2000}`, `room,site=south temp=1 ${now - 500}`, `hall temp=1 ${now}`, `hall temp=1 ${now - 60_000}`]);
    await page.getByRole('button', { name: 'Refresh' }).click();
    const first = async () => (await rows(page)).map((cells) => cells.slice(0, 2).map(plain));
    await becomes(first, [['north', '2'], ['without site', '1'], ['south', '1']], page);
    assert.equal(await page.getByRole('alert').count(), 0);
    await page.getByRole('columnheader', { name: 'site' }).waitFor();
    await page.getByRole('link', { name: 'south' }).click();
    await becomes(() => texts(page, '.legend .name'), ['room_temp{site="south"}'], page);
  } finally {
    await other.end();
  }
});

test('a metric leads to its samples', async () => {
  const page = await browser.open(late(server, { by: 'metric' }));
  await page.getByRole('link', { name: HOSTILE }).click();
  await becomes(() => texts(page, '.legend .name'), [`{"<img src=x onerror=\\"window.hacked=1\\">", a="b"}`], page);
  await page.goBack();
  await page.getByRole('link', { name: 'room_temp' }).click();
  await becomes(() => texts(page, '.legend .name'), ['room_temp{site="north"}'], page);
  assert.equal(parameters(page).get('range'), '1h30m');
});

/** Moves the pointer over the map, the newest minutes first, until the text below it is `wanted`. */
async function hoverFor(page, wanted) {
  const box = await page.locator('.heatmap').boundingBox();
  for (let x = 2; x < box.width; x += 24) {
    for (let y = 4; y < 300; y += 16) {
      await page.mouse.move(box.x + box.width - x, box.y + y);
      if (wanted.test((await plainTexts(page, '.heat .said'))[0])) return;
    }
  }
  assert.fail(`no cell says ${wanted}`);
}

test('the heat map tells values to the pointer and to the keyboard', async () => {
  const page = await browser.open(late(server, { span: '15m' }));
  const map = page.getByRole('application');
  await map.waitFor();
  await map.scrollIntoViewIfNeeded();
  const said = async () => (await plainTexts(page, '.heat .said'))[0];
  await hoverFor(page, /10s to 1m behind the newest: 2 late samples$/);
  await page.mouse.move(5, 5);
  await map.focus();
  // All minutes, since nobody knows in which of them the samples came: up one, down the next.
  const values = new Set();
  for (let minute = 0; minute < 15; minute++) {
    await page.keyboard.press('ArrowLeft');
    for (let turn = 0; turn < 10; turn++) {
      values.add(await said());
      await page.keyboard.press(minute % 2 === 0 ? 'ArrowUp' : 'ArrowDown');
    }
  }
  const counts = [...values].flatMap((text) => /, (.*) behind the newest: ([1-9]\d*)/.exec(text)?.slice(1).join(' = ') ?? []);
  assert.deepEqual(counts.sort(), ['10s to 1m = 2', '1s to 10s = 2', 'up to 1s = 1']);
  await page.keyboard.press('Escape');
  assert.match(await said(), /The pointer, or the arrow keys/);
  await page.getByRole('tab', { name: 'All samples' }).click();
  await becomes(async () => parameters(page).get('ages'), 'clock', page);
  await hoverFor(page, /10s to 1m behind the clock: \d samples$/);
});

test('where nothing came late, or nothing at all, the page says what that means', async () => {
  const other = await Server.begin('--wal', 'off');
  try {
    const page = await browser.open(late(other, { span: '15m' }));
    await page.getByText('No sample came', { exact: true }).waitFor();
    assert.match((await texts(page, '.notice.empty'))[0], /No sample arrived since the start of the server, \d+s ago\. Look whether.*older than the newest of its series/s);
    await other.write([`up v=1 ${Date.now()}`]);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('No sample came late').waitFor();
    assert.deepEqual((await figures(page))[0], '0 %0 of 1 samples');
    await page.getByText(/^Counted since the start, \d+s ago\.$/).waitFor();
    await page.getByText(/^Every sample that arrived since the start of the server, \d+s ago was newer/).waitFor();
    const long = await browser.openChanged(late(other, { span: '15m', protocol: 'otlp' }), '**/status/lateness*', (data) => { data.countedSince = data.start; });
    await long.getByText('No sample arrived in the last 15m by otlp. Choose a longer time or all protocols, or look').waitFor();
    assert.equal(await long.getByText('Counted since').count(), 0);
  } finally {
    await other.end();
  }
});

test('history is that of the figures which the server writes to itself', async () => {
  const other = await Server.begin('--self-metrics', '1s');
  try {
    const now = Date.now();
    await other.write(['room temp=1', `room temp=1 ${now - 60_000}`, `room temp=1 ${now - 90_000}`, `hall temp=1 ${now}`, `hall temp=1 ${now - 1000}`]);
    const page = await browser.open(late(other, { by: 'metric', past: '1d' }));
    const region = page.getByRole('region', { name: 'History of late samples by metric' });
    const cells = async () => (await Promise.all((await region.locator('tbody tr').all()).map((row) => row.locator('td').allTextContents()))).map((row) => row.map(plain));
    await page.getByRole('region', { name: 'History', exact: true }).waitFor();
    // A page asks every minute.
    for (let turn = 0; turn < 60 && (await cells()).length < 2; turn++) {
      await new Promise((resolve) => { setTimeout(resolve, 500); });
      await page.reload();
      await page.getByText(/counted while the server wrote|Nothing is written yet/).waitFor();
    }
    const found = await cells();
    assert.deepEqual(found.map(([name]) => name), ['room_temp', 'hall_temp']);
    assert.match(found[0].slice(1).join(' '), /^2 1m30s$/);
    await page.getByRole('img', { name: /^Share of late samples from / }).waitFor();
    await page.getByRole('tab', { name: 'By sender' }).click();
    await becomes(async () => (await page.getByRole('region', { name: 'History of late samples by sender' }).locator('tbody td').allTextContents()).slice(0, 2).map(plain),
      ['127.0.0.1 default', '3'], page);
  } finally {
    await other.end();
  }
});

test('errors: a wrong span, names that one may not see, a server that is away', async () => {
  const other = await Server.begin();
  try {
    const page = await browser.open(late(other, { span: '3d' }));
    await page.getByRole('alert').getByText('span must be from 1m to 2h').waitFor();
    await page.getByRole('button', { name: 'Show all of the last hour' }).click();
    await page.getByText('No sample came', { exact: true }).waitFor();
    await other.kill();
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('alert').getByText('the server does not answer').first().waitFor();
    assert.equal(await page.getByText('No sample came', { exact: true }).count(), 1, 'the last answer stays');
    other.options = ['--requirepass', 'sesame'];
    await other.start();
    // The page may have asked by itself meanwhile: then the dialog is there, above the button.
    await page.getByRole('button', { name: 'Refresh' }).dispatchEvent('click');
    await page.getByRole('dialog').getByLabel('Password').fill('sesame');
    await page.keyboard.press('Enter');
    await becomes(() => page.getByRole('alert').count(), 0, page);
  } finally {
    await other.end();
  }
});

test('refreshes go on by themselves', async () => {
  const other = await Server.begin('--wal', 'off');
  try {
    const page = await browser.open(late(other, { refresh: '1s' }));
    await page.getByText('No sample came', { exact: true }).waitFor();
    const now = Date.now();
    await other.write([`up v=1 ${now}`, `up v=1 ${now - 1000}`]);
    await becomes(() => figures(page).then((all) => all[0]), '50 %1 of 2 samples', page);
  } finally {
    await other.end();
  }
});
