// Deletion by a selector on the Series page: what is counted is what goes, and nothing else does, nor
// by accident.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, focused, parameters, plain, plainTexts, Server, serving, START, tabTo } from './harness.mjs';

const HOSTILE = '<img src=x onerror=alert`1`>"\\';
const SPAN = { from: String(START + 1000), to: String(START + 3000) };
const NAME = '6 samples of 2 series';
const SUMMARY = `3 series match. ${NAME} would be deleted: those from 2026-01-01 01:00:01 to 2026-01-01 01:00:03.`;

const browser = browsing();
// Ten samples of each, a second apart; those of `late` are after the span.
const server = serving(async () => {
  const rows = (labels, from = START) => Array.from({ length: 10 }, (_, at) => `room{${labels}} ${at} ${from + at * 1000}`);
  await server.importText(['site="a"', 'site="b"', 'site="c"'].flatMap((labels) => rows(labels)));
  await server.importText([...rows('site="late"', START + 60_000), ...rows(`of=${JSON.stringify(HOSTILE)}`)]);
  await server.redis(['ACL', 'SETUSER', 'reader', 'on', '>secret', '+@all', '%R~*']);
});

const address = (parameters, of = server) => `${of.address}#/series?${new URLSearchParams({ delete: 'samples', ...parameters })}`;
const card = (page) => page.getByRole('region', { name: 'What would be deleted' });
const status = async (page) => plain((await plainTexts(page, '.counted [role=status], section > [role=status]')).join());
const count = (page) => page.getByRole('button', { name: 'Count', exact: true });
const what = (page) => page.getByRole('combobox', { name: 'Delete' });
const confirm = (page) => card(page).getByRole('button', { name: /^Delet/ });

/** All samples of the server, as `series timestamp`. */
async function stored(of = server, headers = {}) {
  const answer = await fetch(`${of.address}api/v1/export`, { method: 'POST', body: new URLSearchParams({ 'match[]': '{__name__!=""}' }), headers });
  assert.equal(answer.status, 200);
  const lines = (await answer.text()).trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
  return lines.flatMap(({ metric, timestamps }) => timestamps.map((time) => `${JSON.stringify(metric)} ${time}`)).sort();
}

/** What of `before` is gone now; there is nothing new. */
async function gone(before) {
  const after = new Set(await stored());
  const lost = before.filter((one) => !after.has(one));
  assert.equal(after.size + lost.length, before.length);
  return lost;
}

/** Bodies of the deletions that the page asks for. */
function deletions(page) {
  const asked = [];
  page.on('request', (request) => {
    const body = request.postData() ?? '';
    if (request.url().includes('delete_series') && !body.includes('dry_run=true')) asked.push(body);
  });
  return asked;
}

/** Puts a text in the place of the selector. */
async function write(page, text) {
  await page.getByLabel('Selector').focus();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.press('Backspace');
  await page.keyboard.insertText(text);
  await page.keyboard.press('Escape');
}

/** A page that has counted. */
async function counted(parameters, of) {
  const page = await browser.open(address(parameters, of));
  await count(page).click();
  await confirm(page).waitFor();
  return page;
}

test('neither a count, a double click, Enter held down nor Cancel deletes; any change takes the button back', async () => {
  const before = await stored();
  const page = await browser.open(address({ ...SPAN, select: 'room{site=~"a|b|late"}' }));
  const asked = deletions(page);
  assert.equal(await status(page), 'Counting deletes nothing.');
  await count(page).dblclick();
  await becomes(() => status(page), SUMMARY, page);
  assert.equal(plain(await confirm(page).textContent()), `Delete ${NAME}`);
  // Neither the second click of a double click on it, whatever the first one was on.
  await confirm(page).dispatchEvent('click', { detail: 2 });
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await becomes(() => confirm(page).count(), 0, page);
  // Held down, through both buttons.
  await count(page).focus();
  await page.keyboard.down('Enter');
  await page.keyboard.down('Enter');
  await confirm(page).waitFor();
  await confirm(page).focus();
  for (let turn = 0; turn < 3; turn++) await page.keyboard.down('Enter');
  await page.keyboard.up('Enter');
  assert.equal(await status(page), SUMMARY);
  await page.keyboard.press('Escape');
  await becomes(() => confirm(page).count(), 0, page);
  assert.equal(await focused(page), 'Count');
  for (const [change, back] of [
    [() => page.getByRole('button', { name: 'Later' }).click(), () => page.goBack()],
    [() => what(page).selectOption('whole series'), () => page.goBack()],
    [() => write(page, 'room'), () => write(page, 'room{site=~"a|b|late"}')],
  ]) {
    await count(page).click();
    await becomes(() => status(page), SUMMARY, page);
    await change();
    await becomes(() => confirm(page).count(), 0, page);
    await back();
    await becomes(async () => [parameters(page).get('to'), parameters(page).get('delete')], [SPAN.to, 'samples'], page);
    assert.equal(await confirm(page).count(), 0, 'it does not come back');
  }
  assert.deepEqual(asked, []);
  assert.deepEqual(await gone(before), []);
});

test('the second step deletes what was counted, once, and nothing else', async () => {
  const before = await stored();
  const page = await counted({ ...SPAN, select: 'room{site=~"a|b|late"}' });
  const asked = deletions(page);
  let letGo;
  const held = new Promise((done) => { letGo = done; });
  await page.route('**/delete_series', (route) => held.then(() => route.continue()));
  await confirm(page).dblclick();
  await becomes(() => status(page), 'Deleting...', page);
  await confirm(page).dispatchEvent('click');
  letGo();
  await becomes(() => status(page), `Deleted: ${NAME}, from 2026-01-01 01:00:01 to 2026-01-01 01:00:03, as they were counted.`, page);
  assert.equal(asked.length, 1);
  const lost = await gone(before);
  assert.deepEqual(lost, before.filter((one) => /"site":"[ab]"/.test(one) && /0[123]000$/.test(one)));
  assert.equal(lost.length, 6);
  await count(page).click();
  await becomes(() => status(page), '3 series match. None of them has samples from 2026-01-01 01:00:01 to 2026-01-01 01:00:03.', page);
  assert.equal(await confirm(page).count(), 0);
});

test('a range up to now deletes up to the moment of the count', async () => {
  const now = Date.now();
  await server.importText([`ticks 1 ${now - 60_000}`]);
  const page = await counted({ select: 'ticks', range: '5m' });
  await server.importText([`ticks 2 ${Date.now()}`]);
  await confirm(page).click();
  await becomes(async () => (await status(page)).slice(0, 29), 'Deleted: 1 sample of 1 series', page);
  assert.equal((await stored()).filter((one) => one.includes('ticks')).length, 1);
});

test('whole series are another choice, in other words', async () => {
  const before = await stored();
  const page = await browser.open(address({ ...SPAN, select: 'room{site="c"}' }));
  await what(page).selectOption('whole series');
  assert.equal(await page.getByRole('button', { name: 'Later' }).count(), 0, 'they have no times');
  await count(page).click();
  await becomes(() => status(page), '1 series match. All of each would be deleted: samples, labels and compaction rules.', page);
  assert.equal(plain(await confirm(page).textContent()), 'Delete 1 whole series with 10 samples');
  await confirm(page).click();
  await becomes(() => status(page), 'Deleted: 1 whole series with 10 samples, as they were counted.', page);
  const lost = await gone(before);
  assert.deepEqual(lost, before.filter((one) => one.includes('"site":"c"')));
  const left = await (await fetch(`${server.address}api/v1/series?match[]=${encodeURIComponent('room{site="c"}')}`)).json();
  assert.deepEqual(left.data, []);
  await count(page).click();
  await becomes(() => status(page), 'No series match.', page);
});

test('a list and a series lead there; hostile values are texts', async () => {
  const before = await stored();
  const select = `room{of=${JSON.stringify(HOSTILE)}}`;
  const page = await browser.open(`${server.address}#/series?${new URLSearchParams({ select })}`);
  await page.getByRole('link', { name: 'Delete samples...' }).click();
  await page.getByRole('heading', { name: 'Delete by a selector' }).waitFor();
  assert.deepEqual([parameters(page).get('select'), await page.getByLabel('Selector').textContent()], [select, select]);
  await page.getByRole('link', { name: 'All series' }).click();
  await page.getByRole('link', { name: 'room' }).last().waitFor();
  await page.goto(`${server.address}#/series?${new URLSearchParams({ match: select, ...SPAN })}`);
  await page.getByRole('link', { name: 'Delete samples...' }).click();
  await count(page).click();
  await becomes(async () => plain(await confirm(page).textContent()), 'Delete 3 samples of 1 series', page);
  assert.equal(await page.locator('main img').count(), 0);
  // What would go can be seen before.
  await page.getByRole('link', { name: 'their samples in this time' }).click();
  await page.locator('.legend .name').first().waitFor();
  assert.deepEqual([parameters(page).get('q'), parameters(page).get('from'), parameters(page).get('to')], [select, SPAN.from, SPAN.to]);
  await page.goBack();
  await count(page).click();
  await confirm(page).click();
  await becomes(async () => (await status(page)).slice(0, 8), 'Deleted:', page);
  const lost = await gone(before);
  assert.deepEqual(lost, before.filter((one) => one.includes('img') && /0[123]000$/.test(one)));
});

test('what the server refuses is said, and deletes nothing', async () => {
  const before = await stored();
  const page = await browser.open(address({ ...SPAN, to: START + 9000 }));
  const refused = (text) => page.locator('.notice.error', { hasText: text }).waitFor();
  // Without a selector nothing is meant, least of all everything.
  await count(page).click();
  await refused('match[]');
  await write(page, 'rate(room[1m])');
  await page.keyboard.press('Enter');
  await refused('bad_data');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.locator('.login [name=user]').fill('reader');
  await page.locator('.login [name=password]').fill('secret');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Log out reader' }).waitFor();
  await write(page, 'room');
  await count(page).click();
  await refused('This needs permission for the command TS.DEL on every series that matches.');
  await page.getByRole('button', { name: 'Log out reader' }).click();
  await becomes(() => page.locator('.notice.error').count(), 0, page);
  // Between the steps, too.
  await count(page).click();
  await confirm(page).waitFor();
  await page.route('**/delete_series', (route) => route.fulfill({ status: 503, json: { errorType: 'unavailable', error: "writes are paused; of 4 series 1 are done, 'room' is not" } }));
  await confirm(page).click();
  await refused("of 4 series 1 are done, 'room' is not");
  assert.equal(await confirm(page).count(), 0);
  assert.deepEqual(await gone(before), []);
});

test('a login is asked for, and a server that is away is told of until it is back', async () => {
  const guarded = await Server.begin('--requirepass', 'sesame');
  const headers = { Authorization: 'Bearer sesame' };
  try {
    await guarded.write([`room temp=1 ${START + 2000}`], headers);
    const page = await browser.open(address(SPAN, guarded));
    await count(page).click();
    await page.getByRole('dialog').getByLabel('Password').fill('sesame');
    await page.keyboard.press('Enter');
    // It is asked again by itself.
    await page.locator('.notice.error', { hasText: 'match[]' }).waitFor();
    await write(page, 'room_temp');
    await count(page).click();
    await confirm(page).waitFor();
    await guarded.kill();
    await confirm(page).click();
    await page.getByText('It may have been done all the same. Count again to see what is left.').waitFor();
    await count(page).click();
    await page.locator('.notice.error', { hasText: 'the server does not answer' }).waitFor();
    await page.locator('.banner').waitFor();
    assert.equal(await confirm(page).count(), 0);
    await guarded.start();
    await confirm(page).waitFor();
    assert.equal((await stored(guarded, headers)).length, 1);
    await page.getByRole('button', { name: 'Log out default' }).click();
    await becomes(() => confirm(page).count(), 0, page);
  } finally {
    await guarded.end();
  }
});

test('everything is reached with the keyboard, and fits 320 pixels', async () => {
  const page = await browser.open(address({ ...SPAN, select: 'room{site="a"}', from: START + 4000, to: START + 5000 }), { viewport: { width: 320, height: 700 } });
  await tabTo(page, 'Selector');
  await page.keyboard.press('Enter');
  await confirm(page).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320);
  for (const name of ['Count', 'Later', 'the series', 'their samples', 'Delete 2']) await tabTo(page, name);
  await page.keyboard.press('Enter');
  await becomes(async () => (await status(page)).slice(0, 30), 'Deleted: 2 samples of 1 series', page);
  assert.equal(await focused(page), 'Count');
  await what(page).selectOption('whole series');
  await count(page).click();
  await confirm(page).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320);
});
