// Draws the pictures of docs/console: what the pages show of the demo's weather.
//
//   LATEWOOD_BIN=target/release/latewood SOURCES=1 node tests/console/pictures.mjs [query|explain|server ...]
//
// The server should be an optimised one, since times are in the pictures. SOURCES=1 draws the console
// of the sources, not the one that is in the server.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Browser, query, ROOT, Server } from './harness.mjs';

const MEASURES = ['temp', 'dewp'];
/** Sensors of each measure at each station. */
const COPIES = 20;
/** Lines of a request. */
const LINES = 50_000;
/** The year 2013 in New York. */
const YEAR = { from: 1_357_016_400_000, to: 1_388_552_400_000 };
const TEMPERATURE = 'avg by (station) (avg_over_time({measure="temp"}[1d]))';
/** Answers of the server that its charts have. */
const ANSWERS = 120;
/** Samples between two answers, and how many of them are late. */
const [RATE, LATE] = [4000, 400];

/** Rows of the weather, by column. */
function weather() {
  const text = gunzipSync(readFileSync(join(ROOT, 'data/nyc-weather-2013.csv.gz'))).toString();
  const [head, ...rows] = text.trim().split('\n').map((line) => line.split(','));
  return rows.map((cells) => Object.fromEntries(head.map((name, at) => [name, cells[at]])));
}

async function fill(server) {
  const lines = [];
  for (const row of weather()) {
    for (const measure of MEASURES.filter((name) => row[name] !== '')) {
      for (let copy = 1; copy <= COPIES; copy++) lines.push(`weather,station=${row.station},measure=${measure},sensor=${copy} value=${row[measure]} ${row.unix_seconds}000`);
    }
  }
  for (let at = 0; at < lines.length; at += LINES) await server.write(lines.slice(at, at + LINES));
}

/** Writes by several protocols until the page has answers enough for its charts; some samples are late. */
async function use(server, page) {
  for (let turn = 0; turn < ANSWERS; turn++) {
    const answered = page.waitForResponse((response) => response.url().includes('status/server'));
    const now = Date.now();
    const wave = Math.round(RATE * (1 + Math.sin(turn / 8) / 2));
    await server.write(Array.from({ length: wave }, (_, at) => `load,host=h${at % 100} v=${at} ${now - 40 + Math.floor(at / 100)}`));
    await server.write(Array.from({ length: LATE }, (_, at) => `load,host=h${at % 100} v=1 ${now - 10_000 + Math.floor(at / 100)}`));
    await server.importText(Array.from({ length: wave / 4 }, (_, at) => `scraped{host="h${at}"} ${turn} ${now}`));
    await server.redis(...Array.from({ length: wave / 8 }, (_, at) => ['TS.ADD', `room:${at % 50}`, now + Math.floor(at / 50), at]));
    await fetch(`${server.address}api/v1/query?query=sum(load_v)`);
    await answered;
  }
}

/** Asks a second time, when all is loaded: the times are those of the question alone. */
async function again(page, path, shown) {
  await page.locator(shown).waitFor();
  const answered = page.waitForResponse((response) => response.url().endsWith(path));
  await page.locator('.run').click();
  await answered;
  await page.locator('.busy:not(.on)').waitFor({ state: 'attached' });
  await page.mouse.move(0, 0);
}

const PICTURES = {
  query: {
    address: (server) => query(server, { q: TEMPERATURE, ...YEAR }),
    ready: (server, page) => again(page, 'query_range', '.legend li:nth-child(3) .value'),
  },
  explain: {
    address: (server) => `${server.address}#/explain?${new URLSearchParams({ q: `${TEMPERATURE} - on (station) ${TEMPERATURE.replace('temp', 'dewp')}`, ...YEAR })}`,
    ready: (server, page) => again(page, 'explain', '[role=treegrid]'),
    height: 980,
  },
  server: { address: (server) => `${server.address}#/server?refresh=1s`, ready: use, colorScheme: 'dark' },
};

const names = process.argv.slice(2);
const [server, browser] = [new Server(), new Browser()];
try {
  await server.start();
  await browser.start();
  await fill(server);
  for (const [name, { address, ready, colorScheme, height = 800 }] of Object.entries(PICTURES)) {
    if (names.length > 0 && !names.includes(name)) continue;
    const page = await browser.open(address(server), { viewport: { width: 1280, height }, timezoneId: 'America/New_York', colorScheme });
    await ready(server, page);
    await page.screenshot({ path: join(ROOT, `docs/console/${name}.png`), animations: 'disabled' });
  }
  browser.check();
} finally {
  await browser.end();
  await server.end();
}
