// The Cardinality page, as somebody sees it who uses it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, parameters, serving, texts, using } from './harness.mjs';

const HOSTILE = '<img src=x onerror=alert(1)>"\\x';

const browser = browsing();
const server = serving(async () => {
  const now = Date.now();
  const lines = [];
  for (let at = 0; at < 30; at++) lines.push(`http,pod=p${at},job=${at < 20 ? 'api' : 'web'} requests=1 ${now}`);
  lines.push(`mem,who=${HOSTILE.replace(/[ =]/g, '\\$&')} bytes=1 ${now}`);
  await server.write(lines);
});

const address = (parameters = {}) => `${server.address}#/cardinality?${new URLSearchParams(parameters)}`;
const list = (page, title) => page.getByRole('region', { name: title, exact: true }).locator('table');
/** Names and figures of a list. */
const rows = (page, title) => list(page, title).locator('tbody tr').evaluateAll((found) =>
  found.map((row) => `${row.cells[0].textContent} ${row.cells[1].textContent}`));
const heads = (page) => texts(page, '.heads dd');

test('series are counted by metric, pair and label, and rows narrow the filter', async () => {
  const page = await browser.open(address());
  await becomes(() => rows(page, 'Series by metric'), ['http_requests 30', 'mem_bytes 1'], page);
  assert.deepEqual((await heads(page)).slice(0, 1), ['31']);
  assert.deepEqual((await rows(page, 'Series by pair')).slice(0, 3), ['__name__=http_requests 30', 'job=api 20', 'job=web 10']);
  assert.deepEqual((await rows(page, 'Values by label')).slice(0, 1), ['pod 30']);
  await list(page, 'Series by pair').getByRole('link', { name: 'job=web', exact: true }).click();
  await becomes(() => rows(page, 'Series by metric'), ['http_requests 10'], page);
  assert.equal(parameters(page).get('match'), '{job="web"}');
  await list(page, 'Series by label').getByRole('link', { name: 'pod', exact: true }).click();
  await becomes(async () => (await rows(page, 'Series by value of pod')).length, 10, page);
  await list(page, 'Series by value of pod').getByRole('link', { name: 'p25', exact: true }).click();
  await becomes(async () => (await heads(page))[0], '1', page);
  assert.equal(parameters(page).get('match'), '{job="web", pod="p25"}');
  await page.getByRole('link', { name: 'Query http_requests' }).first().click();
  await becomes(() => texts(page, '.cm-line'), ['{job="web", pod="p25", __name__="http_requests"}'], page);
});

test('the filter says what it would match before it is shown, and where it is wrong', async () => {
  const page = await browser.open(address());
  await becomes(async () => (await heads(page))[0], '31', page);
  await page.locator('.filter .cm-content').click();
  await page.keyboard.type('http_requests{job=~"a.*"');
  const said = page.locator('.filter > p');
  await becomes(() => said.textContent(), 'Would match 20 series; Enter shows them.', page);
  assert.equal((await heads(page))[0], '31');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await becomes(async () => (await heads(page))[0], '20', page);
  assert.equal(await said.textContent(), 'Matches 20 series.');
  await page.goto(address({ match: 'rate(http_requests[1m])' }));
  await page.locator('.notice.error', { hasText: 'bad_data' }).waitFor();
  await page.goto(address({ match: 'nothing' }));
  await page.getByRole('button', { name: 'Count all series' }).click();
  await becomes(async () => (await heads(page))[0], '31', page);
});

test('a hostile value is text, and its row leads to it alone', async () => {
  const page = await browser.open(address({ focus: 'who' }));
  await becomes(() => rows(page, 'Series by value of who'), [`${HOSTILE} 1`], page);
  assert.equal(await page.locator('.lists img').count(), 0);
  await list(page, 'Series by value of who').getByRole('link', { name: HOSTILE, exact: true }).click();
  await becomes(() => rows(page, 'Series by metric'), ['mem_bytes 1'], page);
  await page.goBack();
  await page.getByLabel('Values of label').fill('job');
  await page.keyboard.press('Enter');
  await becomes(() => rows(page, 'Series by value of job'), ['api 20', 'web 10'], page);
  await becomes(async () => (await heads(page))[0], '31', page);
});

/** A server of its own with these lines of Prometheus' text. */
const withLines = (lines, look) => using(['--wal', 'off'], async (other) => {
  await other.importText(lines);
  await look(other);
});

test('labels and values that contain = lead to the right series', async () => {
  const lines = ['{"up","a=b"="c"} 1', '{"up","a"="b=c"} 1', '{"up","a"="b=c","x"="2"} 1', '{"down","token"="cXE9PQ=="} 1'];
  await withLines(lines, async (other) => {
    const page = await browser.open(`${other.address}#/cardinality`);
    const links = () => list(page, 'Series by pair').locator('td:first-child a').allTextContents();
    await becomes(async () => (await links()).sort(), ['__name__=down', '__name__=up', 'a=b=c', 'a=b=c', 'token=cXE9PQ==', 'x=2'], page);
    const narrowBy = async (name, at, match, series) => {
      await list(page, 'Series by pair').getByRole('link', { name, exact: true }).nth(at).click();
      await becomes(async () => parameters(page).get('match'), match, page);
      await becomes(async () => (await heads(page))[0], series, page);
      await page.goBack();
      await becomes(async () => (await links()).length, 6, page);
    };
    // The more frequent pair stands first.
    await narrowBy('a=b=c', 0, '{a="b=c"}', '2');
    await narrowBy('a=b=c', 1, '{"a=b"="c"}', '1');
    await narrowBy('token=cXE9PQ==', 0, '{token="cXE9PQ=="}', '1');
    await list(page, 'Series by label').getByRole('link', { name: 'a=b', exact: true }).click();
    await becomes(() => rows(page, 'Series by value of a=b'), ['c 1'], page);
    await list(page, 'Series by label').getByRole('link', { name: 'Query a=b', exact: true }).click();
    await becomes(() => texts(page, '.cm-line'), ['count by ("a=b") ({"a=b"!=""})'], page);
    await page.locator('.table td', { hasText: 'c' }).first().waitFor();
  });
});

test('a filter by a label in quotes is narrowed by a metric', async () => {
  await withLines(['{"up","my.label"="x"} 1', '{"down","my.label"="x"} 1', '{"my.metric","my.label"="x"} 1'], async (other) => {
    const page = await browser.open(`${other.address}#/cardinality?${new URLSearchParams({ match: '{"my.label"="x"}' })}`);
    const metrics = list(page, 'Series by metric');
    await metrics.getByRole('link', { name: 'up', exact: true }).click();
    await becomes(async () => parameters(page).get('match'), '{"my.label"="x", __name__="up"}', page);
    await becomes(async () => (await heads(page))[0], '1', page);
  });
});

const DAY_MS = 86_400_000;

test('series without samples since some time are counted by metric', async () => {
  const now = Date.now();
  const lines = [`{"fresh","n"="1"} 1 ${now}`, `{"fresh","n"="2"} 1 ${now}`, `{"fresh","n"="3"} 1 ${now - 3 * DAY_MS}`];
  for (const n of [1, 2]) lines.push(`{${JSON.stringify(HOSTILE)},"n"="${n}"} 1 ${now - 10 * DAY_MS}`);
  lines.push(`gone 1 ${now - 40 * DAY_MS}`);
  await withLines(lines, async (other) => {
    const page = await browser.open(`${other.address}#/cardinality`);
    const region = (one) => one.getByRole('region', { name: 'Without samples', exact: true }).first();
    const note = async (one) => (await region(one).locator('.hint').textContent()).replace(/ since \d{4}.*/, '');
    await becomes(() => rows(page, 'Without samples'), [`${HOSTILE} 2`, 'fresh 1', 'gone 1'], page);
    assert.equal(await note(page), '4 of 6 series (66.7 %) have no sample');
    assert.equal(await page.locator('.lists img').count(), 0);
    const midnight = () => page.evaluate(() => new Date().setHours(0, 0, 0, 0)).then((ms) => new Date(ms + 3_600_000).toISOString().slice(0, 19).replace('T', ' '));
    assert.ok((await region(page).locator('.hint').textContent()).includes(await midnight()));
    const choice = region(page).getByRole('combobox');
    await choice.selectOption('7d');
    await becomes(() => rows(page, 'Without samples'), [`${HOSTILE} 2`, 'gone 1'], page);
    assert.equal(parameters(page).get('idle'), '7d');
    const link = await browser.open(page.url());
    await becomes(() => note(link), '3 of 6 series (50 %) have no sample', link);
    await choice.selectOption('30d');
    await becomes(() => rows(page, 'Without samples'), ['gone 1'], page);
    await choice.selectOption('1h');
    await becomes(async () => (await rows(page, 'Without samples')).length, 3, page);
    await list(page, 'Without samples').getByRole('link', { name: 'fresh', exact: true }).focus();
    await page.keyboard.press('Enter');
    await becomes(() => note(page), '1 of 3 series (33.3 %) have no sample', page);
    assert.equal(parameters(page).get('match'), 'fresh');
    await list(page, 'Without samples').getByRole('link', { name: 'Query fresh' }).click();
    await becomes(() => texts(page, '.table td:nth-child(2)'), ['3'], page);
    // A name in quotes is not given twice, either.
    const named = await browser.open(`${other.address}#/cardinality?${new URLSearchParams({ match: `{${JSON.stringify(HOSTILE)}}` })}`);
    await list(named, 'Without samples').getByRole('link', { name: `Query ${HOSTILE}` }).click();
    await becomes(() => texts(named, '.table td:nth-child(2)'), ['1', '2'], named);
    await named.goBack();
    await list(named, 'Series by label').getByRole('link', { name: 'Query __name__' }).click();
    await becomes(() => texts(named, '.cm-line'), [`count by (__name__) ({${JSON.stringify(HOSTILE)}})`], named);
    await named.getByText('No samples').waitFor();
    const fresh = await browser.open(`${other.address}#/cardinality?${new URLSearchParams({ match: 'fresh{n!="3"}' })}`);
    await becomes(() => note(fresh), 'All 2 series have a sample', fresh);
  });
});
