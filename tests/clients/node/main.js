// The behaviour that applications using node-redis rely on: writes, backfill, label queries,
// compaction rules, transactions, and replies of the types the client promises.
//
//   REDIS_PORT=6379 RESP=2 [CA_FILE=ca.crt] node main.js
//
// The server must be empty. Exits with status 0 if all replies are correct.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createClient } from '@redis/client';
import timeSeries from '@redis/time-series';

const RESP = Number(process.env.RESP ?? 2);
const HOUR = 3_600_000;

const encrypted = process.env.CA_FILE ? { tls: true, ca: readFileSync(process.env.CA_FILE), servername: 'localhost' } : {};

const client = createClient({
  socket: { host: '127.0.0.1', port: Number(process.env.REDIS_PORT ?? 6379), reconnectStrategy: false, ...encrypted },
  RESP,
  unstableResp3: true,
  modules: { ts: timeSeries.default ?? timeSeries },
});

// The client makes objects without a prototype; compare their contents.
const same = (actual, expected) =>
  assert.deepEqual(JSON.parse(JSON.stringify(actual)), expected);
const samples = (...pairs) => pairs.map(([timestamp, value]) => ({ timestamp, value }));
const refused = (promise, words) => assert.rejects(promise, (error) => error.message.includes(words));

async function writesAndReads(ts) {
  assert.equal(await ts.create('room:1', {
    RETENTION: 0, DUPLICATE_POLICY: 'LAST', LABELS: { site: 'north', unit: 'celsius' },
  }), 'OK');
  assert.equal(await ts.add('room:1', 1000, 20.5), 1000);
  assert.equal(await ts.add('room:2', 1000, 18, { LABELS: { site: 'south', unit: 'celsius' } }), 1000);
  const [written, refusal] = await ts.mAdd([
    { key: 'room:1', timestamp: 2000, value: 20.75 },
    { key: 'nowhere', timestamp: 1, value: 1 },
  ]);
  assert.equal(written, 2000);
  assert.ok(refusal instanceof Error && refusal.message.includes('not a TSDB key'));
  same(await ts.get('room:1'), { timestamp: 2000, value: 20.75 });
  assert.equal(await ts.get(await empty(ts)), null);
  same(await ts.range('room:1', '-', '+'), samples([1000, 20.5], [2000, 20.75]));
  same(await ts.revRange('room:1', '-', '+', { COUNT: 1 }), samples([2000, 20.75]));
  assert.equal(await ts.incrBy('counter', 3, { TIMESTAMP: 5 }), 5);
  assert.equal(await ts.decrBy('counter', 1, { TIMESTAMP: 6 }), 6);
  same(await ts.range('counter', '-', '+'), samples([5, 3], [6, 2]));
  assert.equal(await ts.del('counter', 0, 5), 1);
  await refused(ts.get('nowhere'), 'the key does not exist');
  await refused(ts.create('room:1'), 'already exists');
}

async function empty(ts) {
  await ts.create('empty');
  return 'empty';
}

async function backfills(ts) {
  // A day of minutes, sent in a shuffled order, then corrected.
  const minutes = Array.from({ length: 1440 }, (_, at) => (at * 641) % 1440);
  await Promise.all(minutes.map((minute) => ts.add('late', minute * 60_000, minute % 60)));
  await Promise.all(minutes.filter((minute) => minute % 60 === 0).map((minute) =>
    ts.add('late', minute * 60_000, 60, { ON_DUPLICATE: 'LAST' })));
  const all = await ts.range('late', '-', '+');
  assert.equal(all.length, 1440);
  assert.ok(all.every((sample, at) => sample.timestamp === at * 60_000));
  same(await ts.range('late', 0, 2 * HOUR - 1, { AGGREGATION: { type: 'MAX', timeBucket: HOUR } }),
    samples([0, 60], [HOUR, 60]));
  same(await ts.range('late', 0, HOUR - 1, {
    AGGREGATION: { type: 'COUNT', timeBucket: HOUR / 2 }, FILTER_BY_VALUE: { min: 30, max: 60 },
  }), samples([0, 1], [HOUR / 2, 30]));
}

async function queriesByLabel(ts) {
  same(await ts.queryIndex('unit=celsius'), ['room:1', 'room:2']);
  same(await ts.queryIndex(['unit=celsius', 'site!=north']), ['room:2']);
  same(await ts.mGet('unit=celsius'), {
    'room:1': { sample: { timestamp: 2000, value: 20.75 } },
    'room:2': { sample: { timestamp: 1000, value: 18 } },
  });
  same((await ts.mGetWithLabels('site=(north,east)'))['room:1'], {
    labels: { site: 'north', unit: 'celsius' }, sample: { timestamp: 2000, value: 20.75 },
  });
  same(await ts.mRange('-', '+', 'unit=celsius'), {
    'room:1': samples([1000, 20.5], [2000, 20.75]), 'room:2': samples([1000, 18]),
  });
  same(await ts.mRevRange('-', '+', 'unit=celsius', { COUNT: 1 }), {
    'room:1': samples([2000, 20.75]), 'room:2': samples([1000, 18]),
  });
  same((await ts.mRangeWithLabels('-', '+', 'site=south'))['room:2'], {
    labels: { site: 'south', unit: 'celsius' }, samples: samples([1000, 18]),
  });
  const grouped = await ts.mRangeGroupBy('-', '+', 'unit=celsius', { label: 'unit', REDUCE: 'MAX' });
  same(grouped['unit=celsius'].samples, samples([1000, 20.5], [2000, 20.75]));
  if (RESP === 3) same(grouped['unit=celsius'].sources, ['room:1', 'room:2']);
  await refused(ts.mGet('site!=north'), 'at least one matcher');
}

async function usesRules(ts) {
  await ts.create('hourly');
  assert.equal(await ts.createRule('room:1', 'hourly', 'AVG', HOUR), 'OK');
  await ts.add('room:1', HOUR, 10);
  await ts.add('room:1', HOUR + 1000, 20);
  await ts.add('room:1', 2 * HOUR, 1);
  await ts.add('room:1', HOUR + 500, 30); // late
  same(await ts.range('hourly', HOUR, '+'), samples([HOUR, 20]));
  same(await ts.get('hourly', { LATEST: true }), { timestamp: 2 * HOUR, value: 1 });
  const info = await ts.info('room:1');
  assert.equal(info.totalSamples, 6);
  assert.equal(info.duplicatePolicy, 'last');
  // By position in the reply, in this client.
  assert.equal(info.ignoreMaxValDiff, 0);
  if (RESP === 3) {
    same(info.labels, { site: 'north', unit: 'celsius' });
    same(info.rules, { hourly: [HOUR, 'AVG', 0] });
  } else {
    same(info.labels, [{ name: 'site', value: 'north' }, { name: 'unit', value: 'celsius' }]);
    same(info.rules, [{ key: 'hourly', timeBucket: HOUR, aggregationType: 'AVG' }]);
  }
  assert.equal((await ts.info('hourly')).sourceKey, 'room:1');
  assert.equal(await ts.deleteRule('room:1', 'hourly'), 'OK');
  await refused(ts.deleteRule('room:1', 'hourly'), 'compaction rule does not exist');
}

async function altersAndExpires(ts) {
  assert.equal(await ts.alter('room:2', { LABELS: { site: 'west' } }), 'OK');
  same(await ts.queryIndex('site=west'), ['room:2']);
  same(await ts.queryIndex('site=south'), []);
  assert.equal(await client.pExpire('room:2', 1_000_000), 1);
  assert.ok((await client.pTTL('room:2')) > 0);
  assert.equal(await client.type('room:2'), 'TSDB-TYPE');
  const [first, second] = await client.multi().ts.add('both', 1, 1).ts.add('both', 2, 2).exec();
  same([first, second], [1, 2]);
}

await client.connect();
try {
  assert.equal(await client.dbSize(), 0, 'the server must be empty');
  for (const part of [writesAndReads, backfills, queriesByLabel, usesRules, altersAndExpires]) {
    await part(client.ts);
    console.log(`node-redis, RESP${RESP}: ${part.name}`);
  }
} finally {
  client.destroy();
}
