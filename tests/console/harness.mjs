// A server of one's own, and pages of a browser that report what must not happen: errors of the
// script, and breaches of the content security policy.
//
//   LATEWOOD_BIN   the server; target/debug/latewood without it
//   CHROMIUM       the browser; /usr/bin/chromium without it
//   SOURCES        1: tests what console/ makes at the moment, not what the server contains

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BINARY = process.env.LATEWOOD_BIN ?? join(ROOT, 'target/debug/latewood');

export class Server {
  constructor(...options) {
    this.options = options;
    this.directory = mkdtempSync(join(tmpdir(), 'latewood-console-'));
  }

  static async begin(...options) {
    const server = new Server(...options);
    await server.start();
    return server;
  }

  get address() { return `http://127.0.0.1:${this.ports[1]}/`; }

  async start() {
    const [resp, http] = this.ports ?? [0, 0];
    const places = ['--dir', this.directory, '--listen', `127.0.0.1:${resp}`, '--http', `127.0.0.1:${http}`];
    this.process = spawn(BINARY, ['serve', ...places, ...this.options], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    await new Promise((ready, died) => {
      this.process.on('error', died);
      this.process.on('exit', (code) => died(new Error(`the server ended with ${code}: ${said}`)));
      this.process.stderr.on('data', (piece) => {
        said = (said + piece).slice(-10_000);
        const places = / ready .*listen="?127.0.0.1:(\d+).*http="?127.0.0.1:(\d+)/.exec(said);
        if (places) ready(this.ports = places.slice(1).map(Number));
      });
    });
  }

  async kill() {
    if (!this.process) return;
    this.process.removeAllListeners('exit');
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.kill('SIGKILL');
    await once(this.process, 'exit');
  }

  async end() {
    await this.kill();
    rmSync(this.directory, { recursive: true });
  }

  /** Sends commands of the Redis protocol, lists of words or buffers; all answers as one text. */
  async redis(...commands) {
    const socket = createConnection(this.ports[0], '127.0.0.1');
    const bulk = (word) => {
      const bytes = Buffer.isBuffer(word) ? word : Buffer.from(String(word));
      return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')];
    };
    socket.end(Buffer.concat([...commands, ['QUIT']].flatMap((words) => [Buffer.from(`*${words.length}\r\n`), ...words.flatMap(bulk)])));
    let answer = '';
    for await (const piece of socket) answer += piece;
    assert.doesNotMatch(answer, /^-/m);
    return answer;
  }

  /** Writes lines of InfluxDB's protocol, in milliseconds. */
  async write(lines, headers = {}) {
    const answer = await fetch(`${this.address}write?precision=ms`, { method: 'POST', body: lines.join('\n'), headers });
    assert.equal(answer.status, 204, await answer.text());
  }

  /** Writes lines of Prometheus' text. */
  async importText(lines) {
    const answer = await fetch(`${this.address}api/v1/import/prometheus`, { method: 'POST', body: `${lines.join('\n')}\n` });
    assert.equal(answer.status, 204, await answer.text());
  }
}

/** Acts on a server that ends with it. */
export async function using(options, act) {
  const server = await Server.begin(...options);
  try {
    await act(server);
  } finally {
    await server.end();
  }
}

/** Puts what console/ makes in the place of the assets; headers stay. */
async function fromSources(context) {
  const { bundle } = await import('../../console/build.mjs');
  const assets = await bundle();
  await context.route(/:\d+\/(console\/.*)?$/, async (route) => {
    const response = await route.fetch();
    const body = assets.get(new URL(route.request().url()).pathname.split('/').pop() || 'index.html');
    const headers = { ...response.headers() };
    delete headers['content-encoding'];
    await route.fulfill({ response, headers, body });
  });
}

export class Browser {
  wrongs = [];

  async start() {
    this.chromium = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: ['--no-sandbox'],
    });
  }

  /** A page; `options` are those of a context of Playwright. */
  async open(address, options = {}) {
    const context = await this.chromium.newContext({ viewport: { width: 1200, height: 900 }, timezoneId: 'Europe/Berlin', ...options });
    return this.openIn(context, address);
  }

  async openIn(context, address) {
    if (process.env.SOURCES) await fromSources(context);
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    page.on('pageerror', (error) => this.wrongs.push(error.stack ?? String(error)));
    page.on('console', (message) => {
      if (/content security policy/i.test(message.text())) this.wrongs.push(message.text());
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(new URL(address).origin) && !/^(data|blob):/.test(request.url())) this.wrongs.push(`asked ${request.url()}`);
    });
    await page.goto(address);
    return page;
  }

  /** A page whose answers from `path` `change` has changed; what `change` returns takes the place of the data. */
  async openChanged(address, path, change, options) {
    const page = await this.open(new URL('#/queries', address).href, options);
    await page.route(path, async (route) => {
      const response = await route.fetch().catch(() => null);
      // The server has ended with the test.
      if (!response) return route.abort().catch(() => {});
      const answer = await response.json();
      answer.data = change(answer.data) ?? answer.data;
      return route.fulfill({ json: answer });
    });
    await page.goto(address);
    return page;
  }

  /** Nothing went wrong that no page shows. */
  check() {
    assert.deepEqual(this.wrongs, []);
  }

  async end() {
    await this.chromium?.close();
  }
}

/** The browser of all tests of a file; each of them may do nothing wrong in it. */
export function browsing() {
  const browser = new Browser();
  before(() => browser.start());
  after(() => browser.end());
  afterEach(() => browser.check());
  return browser;
}

/** A server of all tests of a file, which `fill` fills. */
export function serving(fill = () => {}, ...options) {
  const server = new Server('--wal', 'off', ...options);
  before(async () => {
    await server.start();
    await fill(server);
  });
  after(() => server.end());
  return server;
}

/** The address of the Query page with these parameters. */
export function query(server, parameters) {
  return `${server.address}#/query?${new URLSearchParams(parameters)}`;
}

/** 2026-01-01 00:00 UTC. */
export const START = 1_767_225_600_000;

/** The parameters in the address of a page. */
export const parameters = (page) => new URLSearchParams(page.url().split('?')[1] ?? '');

/** A query that lasts until it is cancelled or its time is over, and takes little memory. */
export const LONG = 'max_over_time(quantile_over_time(0.5, vector(1)[12h:1s])[40d:1s])';

/** Waits until `look` gives `wanted`. */
export async function becomes(look, wanted, page) {
  let seen;
  for (let turn = 0; turn < 600; turn++) {
    seen = await look();
    if (JSON.stringify(seen) === JSON.stringify(wanted)) return;
    await page.waitForTimeout(50);
  }
  assert.deepEqual(seen, wanted);
}

/** An entry of the list of completion, once it can be taken. */
export const listed = (page, text) => page.locator('.cm-tooltip-autocomplete:not(.cm-tooltip-autocomplete-disabled) li', { hasText: text });

/** Takes what completion offers first, once it is listed. In the first moment of a list it takes no key: the page's clock is put behind that. */
export async function complete(page, text) {
  await listed(page, text).waitFor();
  await page.clock.setFixedTime(await page.evaluate(() => Date.now() + 1000));
  await page.keyboard.press('Enter');
}

/** Texts of what a selector finds. */
export const texts = (page, selector) => page.locator(selector).allTextContents();

/** A text without thin spaces. */
export const plain = (text) => text.replace(/\u202f/g, ' ').trim();
export const plainTexts = async (page, selector) => (await texts(page, selector)).map(plain);

/** The name of what has the focus. */
export const focused = (page) => page.evaluate(() => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return element?.getAttribute('aria-label') ?? element?.textContent ?? '';
});

/** Presses Tab until something has the focus whose name begins with this. */
export async function tabTo(page, name) {
  for (let turn = 0; turn < 60; turn++) {
    if ((await focused(page)).startsWith(name)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not reach ${name}`);
}

/** Colours of series in the light theme. */
export const [BLUE, ORANGE, VIOLET] = [[0, 114, 178], [213, 94, 0], [184, 88, 155]];

/** Pixels of the chart that have this colour, about. */
export function pixels(page, [red, green, blue]) {
  return page.locator('.chart canvas').evaluate((canvas, wanted) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] > 200 && wanted.every((value, of) => Math.abs(data[at + of] - value) < 12)) count++;
    }
    return count;
  }, [red, green, blue]);
}
