// What holds wherever a page asks the server: logins, cancelling, refreshes, answers that come late
// or never.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, browsing, parameters, query, Server, serving, START, texts } from './harness.mjs';

// Ten minutes, a value every ten seconds.
const SPAN = { from: String(START), to: String(START + 600_000) };
const PASSWORD = { Authorization: 'Bearer sesame' };

const LINES = Array.from({ length: 61 }, (_, at) => `room temp=${at} ${START + at * 10_000}`);

const browser = browsing();
const server = serving(() => server.write(LINES));
const locked = serving(() => locked.write(LINES, PASSWORD), '--requirepass', 'sesame');

const at = (of, name, parameters = {}) => `${of.address}#/${name}?${new URLSearchParams(parameters)}`;
const legend = (page) => texts(page, '.legend .name');
const nodes = (page) => page.locator('.tree .node:not(.head)').count();
const said = (page) => texts(page, '.said .error');

async function logIn(page, password = 'sesame') {
  await page.getByRole('dialog').getByLabel('Password').fill(password);
  await page.keyboard.press('Enter');
}

/** Holds requests of this path until they are let go. */
async function hold(page, path) {
  const routes = [];
  await page.route(`**/api/v1/${path}*`, (route) => { routes.push(route); });
  return {
    count: () => routes.length,
    async letGo() {
      await page.unroute(`**/api/v1/${path}*`);
      await Promise.all(routes.splice(0).map((route) => route.continue().catch(() => {})));
    },
  };
}

test('after logging out, nothing of the user is shown', async () => {
  const page = await browser.open(query(locked, { ...SPAN, q: 'room_temp' }));
  const leave = async () => {
    await page.getByRole('button', { name: 'Log out default' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  };
  await logIn(page);
  await becomes(() => legend(page), ['room_temp'], page);
  await leave();
  await becomes(() => legend(page), [], page);
  await page.goto(at(locked, 'explain', { ...SPAN, q: 'room_temp + 1' }));
  await page.getByRole('button', { name: 'Log in' }).click();
  await logIn(page);
  await becomes(() => nodes(page), 3, page);
  await leave();
  await becomes(() => nodes(page), 0, page);
});

test('a query that is cancelled leaves no chart of another', async () => {
  const page = await browser.open(query(server, { ...SPAN, q: 'room_temp' }));
  await becomes(() => legend(page), ['room_temp'], page);
  const held = await hold(page, 'query_range');
  await page.evaluate((to) => { location.hash = to; }, `#/query?${new URLSearchParams({ ...SPAN, q: 'max(room_temp)' })}`);
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('heading', { name: 'Cancelled' }).waitFor();
  assert.deepEqual([await legend(page), await said(page)], [[], ['canceled you cancelled the query']]);
  await held.letGo();
  await page.getByRole('button', { name: 'Run again' }).click();
  await becomes(() => legend(page), ['{}'], page);
  await hold(page, 'query_range');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await becomes(() => said(page), ['canceled you cancelled the query'], page);
  assert.deepEqual(await legend(page), ['{}'], 'its own last answer stays');
});

test('a query without answer does not hold the others at its time', async () => {
  const page = await browser.open(query(server, { ...SPAN, step: '10s' }));
  const go = (parameters) => page.evaluate((to) => { location.hash = to; }, `#/query?${parameters}`);
  const queries = [['q', 'room_temp'], ['q', 'max(room_temp)']];
  const shorter = new URLSearchParams([...queries, ['from', SPAN.from], ['to', String(START + 300_000)]]);
  const longer = new URLSearchParams([...queries, ...Object.entries(SPAN)]);
  const times = () => page.locator('.chart').evaluate(({ dataset }) => [dataset.from, dataset.to]);
  await go(shorter);
  await becomes(async () => (await legend(page)).length, 2, page);
  const fail = (route) => (route.request().postData().includes('max') ? route.abort() : route.continue());
  await page.route('**/api/v1/query_range', fail);
  await go(longer);
  await becomes(times, Object.values(SPAN), page);
  assert.deepEqual([await legend(page), (await said(page)).length], [['A room_temp'], 1]);
  await page.unroute('**/api/v1/query_range', fail);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await becomes(async () => (await legend(page)).length, 2, page);
});

/** A page whose clock the test moves; what it asks is counted. */
async function openTimed(address, path = '') {
  const context = await browser.chromium.newContext();
  await context.clock.install();
  const held = path ? await hold(context, path) : null;
  let asked = 0;
  context.on('request', (request) => { if (/v1\/(query|status)/.test(request.url())) asked++; });
  const page = await browser.openIn(context, address);
  return {
    page, held, asked: () => asked,
    /** What timers of this time ask is sent when this returns. */
    async pass(ms) {
      await page.clock.runFor(ms);
      await page.evaluate(() => fetch('-/ready').then((answer) => answer.text()));
    },
  };
}

test('a refresh waits for the answer', async () => {
  for (const [path, address] of [
    ['status/series/samples', at(server, 'series', { key: 'room_temp', range: '1h', refresh: '1s' })],
    ['query', query(server, { q: 'vector(1)', view: 'table', refresh: '1s' })],
    ['status/lateness', at(server, 'late', { refresh: '1s' })],
    ['status/server', at(server, 'server', { refresh: '1s' })],
  ]) {
    const { page, held, asked, pass } = await openTimed(address, path);
    await becomes(() => held.count(), 1, page);
    for (let turn = 0; turn < 5; turn++) await pass(2000);
    assert.equal(held.count(), 1, path);
    const before = asked();
    await held.letGo();
    await becomes(async () => {
      await pass(1000);
      return asked() > before + 1;
    }, true, page);
    await page.context().close();
  }
});

test('who does not log in is not asked again by refreshes', async () => {
  for (const address of [
    query(locked, { ...SPAN, q: 'room_temp', refresh: '1s' }),
    at(locked, 'late', { refresh: '1s' }),
    at(locked, 'series', { key: 'room_temp', ...SPAN, refresh: '1s' }),
    at(locked, 'server', { refresh: '1s' }),
  ]) {
    const { page, asked, pass } = await openTimed(address);
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await becomes(() => page.locator('.error[role=alert]').count().then((count) => count > 0), true, page);
    await pass(5000); // a refresh at most
    const before = asked();
    for (let turn = 0; turn < 5; turn++) await pass(2000);
    assert.deepEqual([asked(), await dialog.count()], [before, 0], address);
    await page.getByRole('button', { name: 'Log in' }).first().click();
    await logIn(page);
    await page.getByRole('button', { name: 'Log out default' }).waitFor();
    await becomes(() => page.locator('.error[role=alert]').count(), 0, page);
    await becomes(async () => {
      await pass(1000);
      return asked() > before + 5;
    }, true, page);
    await page.context().close();
  }
});

test('a refusal of before the login, or of before its Cancel, asks for no other', async () => {
  const page = await browser.open(at(locked, 'explain'));
  const dialog = page.getByRole('dialog');
  // The editor's own check would ask for the login first.
  await hold(page, 'format_query');
  let held = await hold(page, 'label/__name__/values');
  const type = async () => {
    await page.locator('.cm-content').click();
    await page.keyboard.type('room');
    await becomes(() => held.count(), 1, page);
    await page.getByRole('button', { name: 'Log in' }).click();
  };
  const refused = async () => {
    const answer = page.waitForResponse((response) => response.url().includes('__name__'));
    await held.letGo();
    assert.equal((await answer).status(), 401);
    await page.evaluate(() => fetch('-/ready').then((ready) => ready.text()));
    assert.equal(await dialog.count(), 0);
  };
  await type();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await refused();
  await page.reload();
  held = await hold(page, 'label/__name__/values');
  await type();
  await logIn(page);
  await page.getByRole('button', { name: 'Log out default' }).waitFor();
  await refused();
});

test('only a password that the server accepts logs in', async () => {
  const page = await browser.open(`${locked.address}#/late`);
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  await page.route('**/api/v1/labels*', (route) => route.abort());
  await logIn(page, 'nonsense');
  await dialog.getByText('the server does not answer').waitFor();
  await page.unroute('**/api/v1/labels*');
  const held = await hold(page, 'labels');
  await logIn(page, 'sesame');
  await becomes(() => held.count(), 1, page);
  const ended = page.waitForEvent('requestfailed');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await ended;
  await held.letGo();
  assert.equal(await page.getByRole('button', { name: /^Log out/ }).count(), 0);
  await becomes(() => dialog.count(), 0, page);
});

test('the focus is where it was before the login', async () => {
  const page = await browser.open(query(server, SPAN));
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  await page.getByRole('button', { name: 'Log in' }).click();
  await logIn(page);
  await becomes(focused, 'Log out default', page);
});

test('what is typed stays when an answer comes, and when a login is refused', async () => {
  const context = await browser.chromium.newContext();
  const held = await hold(context, 'query_range');
  const page = await browser.openIn(context, query(server, { ...SPAN, q: 'room_temp' }));
  await becomes(() => held.count(), 1, page);
  const step = page.getByRole('textbox', { name: 'Step' });
  await step.fill('25s');
  await held.letGo();
  await becomes(() => legend(page), ['room_temp'], page);
  await step.press('Enter');
  await becomes(() => parameters(page).get('step'), '25s', page);
  // What another one asked for is shown.
  await page.goBack();
  await becomes(() => step.inputValue(), '', page);
  const other = await browser.open(query(locked, { ...SPAN, q: 'room_temp' }));
  const user = other.getByRole('dialog').getByLabel('User');
  await user.fill('reader');
  await logIn(other, 'wrong');
  await other.getByRole('alert').getByText('wrong user name or password').waitFor();
  assert.equal(await user.inputValue(), 'reader');
});

test('a login that the browser keeps by itself is not used', async () => {
  const context = await browser.chromium.newContext({ httpCredentials: { username: 'default', password: 'sesame' } });
  const page = await browser.openIn(context, `${locked.address}api/v1/labels`);
  await page.getByText('"success"').waitFor();
  await page.goto(query(locked, { ...SPAN, q: 'room_temp' }));
  await page.getByRole('dialog').waitFor();
});

test('what cannot be done says why', async () => {
  const page = await browser.open(at(server, 'queries'));
  const refuse = (path) => page.route(`**/api/v1/${path}*`, (route) => route.fulfill({ status: 403, json: { status: 'error', errorType: 'forbidden', error: `no ${path} for you` } }));
  await refuse('status/tsdb');
  await page.goto(query(server, { q: 'room_temp', range: '5m' }));
  await page.getByRole('alert').getByText('no status/tsdb for you').waitFor();
  await refuse('format_query');
  await page.getByRole('button', { name: 'Format (A)' }).click();
  await page.getByRole('alert').getByText('no format_query for you').waitFor();
  await page.unrouteAll();
  await page.getByLabel('Query A').locator('.cm-content').click();
  await page.keyboard.type(' ');
  await becomes(() => said(page), [], page);
  await refuse('status/tsdb');
  await page.goto(at(server, 'explain', { q: 'room_temp', range: '5m' }));
  await page.getByRole('alert').getByText('no status/tsdb for you').waitFor();
});

test('the time of one sample alone is shown, and none where there is none', async () => {
  const other = await Server.begin('--wal', 'off');
  try {
    const page = await browser.open(query(other, { q: 'room_temp', range: '5m' }));
    await page.getByText('No series matches room_temp.').waitFor();
    await other.redis(['TS.CREATE', 'room_temp']);
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('The series have no samples.').waitFor();
    await other.write([`room temp=1 ${START}`]);
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('button', { name: 'Show all the time that has samples' }).click();
    await becomes(() => legend(page), ['room_temp'], page);
  } finally {
    await other.end();
  }
});

test('a selector that the server does not check is not said to be missing', async () => {
  const context = await browser.chromium.newContext();
  await context.route('**/api/v1/status/series?match*', (route) => route.fulfill({ status: 503, json: { status: 'error', errorType: 'unavailable', error: 'too many requests' } }));
  const page = await browser.openIn(context, at(server, 'series', { key: 'room_temp', ...SPAN }));
  await page.getByRole('alert').getByText('too many requests').waitFor();
  await page.getByText('Query and Download need one').waitFor();
  await context.unrouteAll();
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('link', { name: 'Query', exact: true }).last().waitFor();
  await becomes(() => page.getByRole('alert').count(), 0, page);
});

test('an export is cancelled by a button, and by leaving the page', async () => {
  for (const address of [query(server, { ...SPAN, q: 'room_temp' }), at(server, 'series', { key: 'room_temp', ...SPAN })]) {
    const page = await browser.open(address);
    const held = await hold(page, 'export');
    const running = page.locator('[role=status]', { hasText: 'Exporting' });
    const begin = async () => {
      await page.getByRole('button', { name: 'Download' }).click();
      await page.locator('.panel button', { hasText: /^(Samples as )?Arrow/ }).click();
      await running.waitFor();
    };
    const ended = async (act) => {
      const failed = page.waitForEvent('requestfailed', (request) => request.url().includes('export'));
      await act();
      await failed;
    };
    await begin();
    await ended(() => page.getByRole('button', { name: 'Cancel export' }).click());
    await becomes(() => running.count(), 0, page);
    assert.equal(await page.getByRole('alert').count(), 0);
    await begin();
    await ended(() => page.getByRole('link', { name: 'Late', exact: true }).click());
    await page.goBack();
    await page.getByRole('button', { name: 'Log in' }).click();
    await logIn(page);
    await begin();
    await ended(() => page.getByRole('button', { name: /^Log out/ }).click());
    await held.letGo();
  }
});
