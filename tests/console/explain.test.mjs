// The Explain page, as somebody sees it who wonders what a query does.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, listed, LONG, parameters, query, Server, serving, START, texts } from './harness.mjs';

// Ten minutes, a value every ten seconds.
const SPAN = { from: String(START), to: String(START + 600_000) };
const HOSTILE = '<img src=x onerror=alert(1)>';

const browser = browsing();
const server = serving(async () => {
  const lines = [];
  for (let at = 0; at <= 600; at += 10) {
    const time = START + at * 1000;
    for (const host of ['a', 'b', 'c']) {
      for (const code of [200, 500]) lines.push(`http,host=${host},code=${code} requests=${at} ${time}`);
      lines.push(`node,instance=${host},zone=z memory=1 ${time}`);
    }
    lines.push(`disk,host=a,dev=x free=1 ${time}`, `disk,host=a,dev=y free=2 ${time}`);
    lines.push(`pool,host=a size=4 ${time}`, `pool,host=d size=4 ${time}`);
    lines.push(`evil,who=${HOSTILE.replace(/[ =]/g, '\\$&')} bytes=1 ${time}`, `tame,who=b bytes=1 ${time}`);
  }
  await server.write(lines);
});

const address = (parameters) => `${server.address}#/explain?${new URLSearchParams(parameters)}`;
const open = (parameters) => browser.open(address({ ...SPAN, ...parameters }));
const rows = (page) => texts(page, '.tree .node:not(.head) .expression code');
const chosen = (page) => page.locator('.tree [aria-selected=true] code').textContent();
const marked = (page) => texts(page, '.cm-marked');
const detail = (page) => page.getByRole('region', { name: 'Chosen node' });
const figure = (page, name) => detail(page).locator('.node-figures div').filter({ has: page.getByText(name, { exact: true }) }).locator('dd').textContent();
const cells = (page, text) => page.locator('.tree .node', { has: page.getByText(text, { exact: true }) })
  .locator(':is(.kind, .in, .out, .samples, .read, .late)').allTextContents();

const RATIO = 'sum by (host) (rate(http_requests{code="500"}[5m])) / on(host) sum by (host) (rate(http_requests[5m]))';

test('a query is a tree with figures, and a node is marked in the text', async () => {
  const page = await open({ q: RATIO, step: '10s' });
  await becomes(() => page.locator('.tree .node:not(.head)').count(), 7, page);
  await becomes(() => cells(page, 'http_requests{code="500"}[5m]'), ['range selector', '3', '3', '183', '183', '0'], page);
  assert.deepEqual((await cells(page, 'rate(http_requests[5m])')).slice(0, 3), ['function', '6', '6']);
  assert.match((await texts(page, '.figures'))[0], /evaluated in .*61 steps.*3 series with.*9 series read.*549 samples read.*0 late merged.*peak memory/);
  assert.match(await detail(page).textContent(), /Series match when they have the same host, one-to-one/);
  await page.getByText('3 pairs').waitFor();
  await page.locator('.tree .node', { hasText: 'http_requests[5m]' }).last().click();
  await becomes(() => marked(page), ['http_requests[5m]'], page);
  assert.equal(await figure(page, 'Samples read'), '366');
  await becomes(async () => parameters(page).get('node'), '6', page);
  // Offsets of the server are bytes.
  await page.goto(address({ ...SPAN, q: 'label_replace(http_requests, "\u00e4\u{1f600}", "x", "", "") + on() group_left vector(7)', node: '7' }));
  await becomes(() => marked(page), ['vector(7)'], page);
  assert.equal(await figure(page, 'Series out'), '1');
});

test('a division that is empty says which labels differ, and what would match', async () => {
  const page = await open({ q: 'http_requests / node_memory', instant: '1' });
  await page.getByText('No series of the left side matches one of the right side.').waitFor();
  const differences = () => page.locator('.differences tbody tr').evaluateAll((found) => found.map((row) => [...row.children].map((cell) => cell.textContent).join(' | ')));
  await becomes(differences, [
    'code | "200", "500" | none | on the left only',
    'host | "a", "b", "c" | none | on the left only',
    'instance | none | "a", "b", "c" | on the right only',
    'zone | none | "z" | on the right only',
  ], page);
  assert.match((await texts(page, '.side'))[0], /Left6 series: 0 matched, 6 unmatched.*http_requests\{code="200", host="a"\}/);
  const wanted = 'http_requests / on (host) group_left label_replace(node_memory, "host", "$1", "instance", "(.*)")';
  await becomes(() => texts(page, '.suggestions a'), [wanted], page);
  await page.locator('.suggestions a').click();
  await page.getByText('6 pairs').waitFor();
  assert.equal(parameters(page).get('q'), wanted);
  assert.equal(await page.locator('.why').count(), 0);
});

test('a suggestion keeps the rest of the query, and leads to a result', async () => {
  const cases = [
    ['(http_requests) > bool (pool_size) or no_such', ['(http_requests) > bool on (host) group_left () (pool_size) or no_such', '(http_requests) > bool ignoring (code) group_left () (pool_size) or no_such']],
    ['pool_size * on (host, code) http_requests', ['pool_size * on (host) group_right http_requests', 'pool_size * ignoring (code) group_right http_requests']],
    ['sum(http_requests and on(code) pool_size)', ['sum(http_requests and on (host) pool_size)', 'sum(http_requests and ignoring (code) pool_size)']],
    ['http_requests / sum(http_requests)', ['http_requests / on () group_left sum(http_requests)']],
    ['http_requests + disk_free', ['http_requests + on (host) group_left sum by (host) (disk_free)']],
    ['http_requests{code="200"} - http_requests{code="500"}', ['http_requests{code="200"} - on (host) http_requests{code="500"}', 'http_requests{code="200"} - ignoring (code) http_requests{code="500"}']],
  ];
  const page = await open({});
  for (const [text, wanted] of cases) {
    const node = text.startsWith('(') || text.startsWith('sum') ? '1' : '0';
    await page.goto(address({ ...SPAN, q: text, node, instant: '1' }));
    await becomes(() => texts(page, '.suggestions a'), wanted, page);
    for (const one of wanted) {
      const answer = await fetch(`${server.address}api/v1/query`, { method: 'POST', body: new URLSearchParams({ query: one, time: String(START / 1000 + 600) }) });
      assert.notEqual((await answer.json()).data?.result.length ?? 0, 0, one);
    }
  }
});

test('where one side or a selector is empty, that is what is shown', async () => {
  const page = await open({ q: 'pool_size / rate(no_such_metric[5m])' });
  await page.getByText('No series match this selector.').waitFor();
  assert.equal(await chosen(page), 'no_such_metric[5m]');
  assert.deepEqual(await marked(page), ['no_such_metric[5m]']);
  await page.keyboard.press('Escape');
  await page.locator('.tree').press('Home');
  await page.getByRole('button', { name: 'Show the right side' }).click();
  await becomes(() => chosen(page), 'rate(no_such_metric[5m])', page);
  await page.goto(address({ q: 'pool_size > 1', range: '5m' }));
  await page.getByText('2 series match this selector, but none has samples at this time.').waitFor();
  await page.getByRole('button', { name: 'Show all the time that has samples' }).click();
  await becomes(() => page.locator('.why').count(), 0, page);
  await page.goto(address({ ...SPAN, q: 'pool_size > 100' }));
  await page.getByText('The comparison removes all series.').waitFor();
});

test('the tree is used with the keyboard, and a link shows the same', async () => {
  const page = await open({ q: RATIO });
  const tree = page.getByRole('treegrid');
  await tree.waitFor();
  await tree.focus();
  const pressed = async (key, wanted) => {
    await page.keyboard.press(key);
    await becomes(() => chosen(page), wanted, page);
  };
  await pressed('ArrowDown', 'sum by (host) (rate(http_requests{code="500"}[5m]))');
  await pressed('ArrowRight', 'rate(http_requests{code="500"}[5m])');
  await pressed('ArrowLeft', 'rate(http_requests{code="500"}[5m])');
  await becomes(async () => (await rows(page)).length, 6, page);
  assert.equal(await page.getByRole('row', { selected: true }).getAttribute('aria-expanded'), 'false');
  await pressed('ArrowDown', 'sum by (host) (rate(http_requests[5m]))');
  await pressed('End', 'http_requests[5m]');
  await pressed('ArrowLeft', 'rate(http_requests[5m])');
  await pressed('ArrowLeft', 'rate(http_requests[5m])');
  await pressed('Home', RATIO.replace('on(host)', 'on (host)'));
  await pressed('ArrowUp', RATIO.replace('on(host)', 'on (host)'));
  await pressed('ArrowDown', 'sum by (host) (rate(http_requests{code="500"}[5m]))');
  assert.equal(await tree.getAttribute('aria-activedescendant'), await page.getByRole('row', { selected: true }).getAttribute('id'));
  await becomes(async () => [parameters(page).get('node'), parameters(page).get('fold')], ['1', '2,5'], page);
  const look = async (one) => ({ rows: await rows(one), chosen: await chosen(one), marked: (await marked(one)).join('') });
  const other = await browser.open(page.url());
  await becomes(() => look(other), await look(page), other);
  await other.getByRole('button', { name: 'Expand all' }).click();
  await becomes(async () => (await rows(other)).length, 7, other);
  await other.getByRole('button', { name: 'Collapse all' }).click();
  await becomes(async () => (await rows(other)).length, 3, other);
  await other.getByRole('button', { name: 'Slowest' }).click();
  await becomes(async () => /^\d$/.test(parameters(other).get('node')), true, other);
  await becomes(() => other.getByRole('row', { selected: true }).count(), 1, other);
});

test('two thousand nodes are scrolled, and only those in sight are drawn', async () => {
  const q = Array.from({ length: 250 }, (_, at) => `abs(ceil(floor(round(exp(ln(sqrt(http_requests{host="h${at}"})))))))`).join(' or ');
  const page = await open({ q, instant: '1' });
  await page.getByText('2\u202f000 nodes').waitFor();
  assert.ok(await page.locator('.tree .node').count() < 80);
  await page.getByRole('treegrid').press('End');
  await becomes(async () => parameters(page).get('node'), '1999', page);
  await page.getByRole('row', { selected: true }).waitFor();
  assert.ok(await page.getByRole('row', { selected: true }).isVisible());
  await becomes(() => marked(page).then((found) => found.length > 0), true, page);
  const names = Array.from({ length: 400 }, (_, at) => `"l${at}"`);
  await page.goto(address({ ...SPAN, q: `label_join(pool_size, "all", "-", ${names.join(', ')})`, node: '300' }));
  await becomes(() => marked(page), ['"l296"'], page);
});

test('Query leads here and back, with what is typed', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'pool_size', step: '20s', view: 'table' }));
  await page.getByLabel('Query A').locator('.cm-content').click();
  await page.keyboard.press('End');
  await page.keyboard.insertText(' + 1');
  await page.getByRole('link', { name: 'Explain (A)' }).press('Enter');
  await becomes(() => rows(page), ['pool_size + 1', 'pool_size', '1'], page);
  const wanted = { q: 'pool_size + 1', from: SPAN.from, to: SPAN.to, step: '20s' };
  assert.deepEqual(Object.fromEntries(parameters(page)), { ...wanted, instant: '1' });
  assert.equal(await page.getByRole('button', { name: 'Instant' }).getAttribute('aria-pressed'), 'true');
  await page.getByRole('link', { name: 'Open in Query' }).click();
  await becomes(async () => (await texts(page, '.table tbody td')).filter((text) => text === '5').length, 2, page);
  assert.deepEqual(Object.fromEntries(parameters(page)), { ...wanted, view: 'table' });
  await page.locator('h1').evaluate(() => document.activeElement?.blur());
  await page.keyboard.press('g');
  await page.keyboard.press('e');
  await page.getByText('No query yet').waitFor();
  await page.getByLabel('Expression').click();
  await page.keyboard.type('pool_s');
  await listed(page, 'pool_size').waitFor();
});

test('errors, remarks and a hostile value are texts at their places', async () => {
  const page = await open({ q: 'sum(pool_size) + rate(pool_size)' });
  await becomes(async () => /1:23: parse error: expected type range vector/.test((await texts(page, '.said .error')).join('')), true, page);
  await becomes(() => texts(page, '.cm-lintRange-error'), ['pool_size'], page);
  await page.goto(address({ ...SPAN, q: 'http_requests / on(host) http_requests' }));
  await page.getByText('Several series of that side have the same matching labels.', { exact: false }).waitFor();
  await page.goto(address({ ...SPAN, q: 'abs(rate(pool_size[1m]))' }));
  await page.locator('.remarks .info button').click();
  await becomes(() => chosen(page), 'pool_size[1m]', page);
  assert.match(await detail(page).locator('.remarks').textContent(), /metric might not be a counter/);
  await page.goto(address({ ...SPAN, q: 'evil_bytes + tame_bytes' }));
  await page.locator('.side', { hasText: `evil_bytes{who="${HOSTILE}"}` }).waitFor();
  assert.equal(await page.locator('.explained img').count(), 0);
});

test('a query that runs is cancelled here, by others and by its time', async () => {
  const page = await open({ q: LONG, instant: '1' });
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('heading', { name: 'Cancelled' }).waitFor();
  await page.getByRole('button', { name: 'Explain again' }).click();
  const active = async () => (await (await fetch(`${server.address}api/v1/status/active_queries`)).json()).data.filter((one) => !one.canceled);
  await becomes(async () => (await active()).length, 1, page);
  const [{ id }] = await active();
  await fetch(`${server.address}api/v1/status/active_queries/${id}/cancel`, { method: 'POST' });
  await page.getByText('Somebody cancelled it', { exact: false }).waitFor();
  const hurried = await Server.begin('--wal', 'off', '--promql-timeout', '100ms');
  try {
    await page.close();
    const other = await browser.open(`${hurried.address}#/explain?${new URLSearchParams({ q: LONG, instant: '1' })}`);
    await other.getByText('Choose a shorter time or a longer step', { exact: false }).waitFor();
    await other.context().close();
  } finally {
    await hurried.end();
  }
});

test('a narrow screen shows the tree without sideways scrolling', async () => {
  const page = await browser.open(address({ ...SPAN, q: 'http_requests / node_memory' }), { viewport: { width: 400, height: 800 } });
  await page.locator('.suggestions a').waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 400);
  assert.deepEqual(await page.locator('.tree .head span:visible').allTextContents(), ['Expression', 'Out', 'Total', 'Share']);
});

test('the last explanation stays while the server is away', async () => {
  const own = await Server.begin();
  try {
    await own.write([`pool,host=a size=4 ${START}`]);
    const page = await browser.open(`${own.address}#/explain?${new URLSearchParams({ ...SPAN, q: 'pool_size + 1', instant: '1' })}`);
    await becomes(async () => (await rows(page)).length, 3, page);
    await own.kill();
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    await page.locator('.said .error', { hasText: 'network' }).waitFor();
    assert.equal((await rows(page)).length, 3);
    assert.match((await texts(page, '.figures'))[0], /at 2026-01-01 01:10:00/);
    await own.start();
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    await becomes(() => page.locator('.said .error').count(), 0, page);
    await page.context().close();
  } finally {
    await own.end();
  }
});
