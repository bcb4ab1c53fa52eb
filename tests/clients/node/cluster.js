// Writers with the cluster clients of node-redis and ioredis, for tests of nodes that come and go.
//
//   PORT=7001 NAME=x node cluster.js node-redis|ioredis
//
// test_cluster_clients.py says what such a program does.

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { createCluster } from '@redis/client';
import timeSeries from '@redis/time-series';
import Redis from 'ioredis';

const BATCH = 5;
const SEED = { host: '127.0.0.1', port: Number(process.env.PORT) };
const ROWS = `rows:${process.env.NAME}`;
const SUM = `sum:${process.env.NAME}`;

// The client does not look for another master when a connection ends: it would wait for the one that
// is gone. So it fails at once here, and is replaced.
class NodeRedis {
  addresses = new Map([[SEED.port, SEED]]);

  async replace() {
    // What `destroy` of the cluster does not do, once a node has gone.
    for (const { client } of this.cluster?.nodeByAddress.values() ?? []) if (client?.isOpen) client.destroy();
    this.cluster = createCluster({
      rootNodes: [...this.addresses.values()].map((socket) => ({ socket })),
      useReplicas: true,
      // A node that is down does not hold up the others.
      minimizeConnections: true,
      defaults: { disableOfflineQueue: true, socket: { reconnectStrategy: false } },
      modules: { ts: timeSeries.default ?? timeSeries },
    });
    this.cluster.on('error', () => {}).on('node-error', () => {});
    await this.cluster.connect();
    for (const { host, port } of this.cluster.nodeByAddress.values()) this.addresses.set(port, { host, port });
  }

  // Without an answer of a server, the next command has a new client.
  async ask(command) {
    try {
      if (!this.cluster) await this.replace();
      return await command(this.cluster.ts);
    } catch (error) {
      if (!/^[A-Z]+ /.test(error.message)) await this.replace().catch(() => {});
      throw error;
    }
  }

  // Commands of one moment go in one packet.
  add = (rows) => this.ask((ts) => Promise.all(rows.map((at) => ts.add(ROWS, at, 3 * at, { ON_DUPLICATE: 'LAST' }))));
  increment = () => this.ask((ts) => ts.incrBy(SUM, 1, { TIMESTAMP: 1 }));
  read = () => this.ask((ts) => ts.get(ROWS));
}

class IoRedis {
  // The owner may go without a word; it is looked for each second.
  options = { scaleReads: 'slave', slotsRefreshInterval: 1000 };
  cluster = this.connect({ ...this.options, maxRedirections: 64 });
  // For what must not be sent twice: no command is sent again whose connection ended.
  once = this.connect({ ...this.options, maxRedirections: 0 });

  connect(options) {
    return new Redis.Cluster([SEED], options).on('error', () => {});
  }

  async add(rows) {
    const pipeline = this.cluster.pipeline();
    for (const at of rows) pipeline.call('TS.ADD', ROWS, at, 3 * at, 'ON_DUPLICATE', 'LAST');
    for (const [error] of await pipeline.exec()) if (error) throw error;
  }

  increment = () => this.once.call('TS.INCRBY', SUM, 1, 'TIMESTAMP', 1);

  async read() {
    // It does not know by itself that this command only reads.
    const command = new Redis.Command('TS.GET', [ROWS], { replyEncoding: 'utf8', readOnly: true });
    const [timestamp, value] = await this.cluster.sendCommand(command);
    return { timestamp, value: Number(value) };
  }
}

const succeeds = (promise) => promise.then(() => true, () => false);

const client = { 'node-redis': NodeRedis, ioredis: IoRedis }[process.argv[2]];
const writer = new client();
let [done, rows, sent, sum, reads] = [false, 0, 0, 0, 0];
process.stdin.on('end', () => { done = true; }).resume();
while (!done) {
  const next = Array.from({ length: BATCH }, (_, at) => rows + 1 + at);
  while (!(await succeeds(writer.add(next)))) await pause(100);
  rows += BATCH;
  sent += 1;
  if (await succeeds(writer.increment())) sum += 1;
  else await pause(100);
  const newest = await writer.read().catch(() => null);
  if (newest) {
    assert.ok(newest.timestamp <= rows && newest.value === 3 * newest.timestamp, `${JSON.stringify(newest)} after ${rows} rows`);
    reads += 1;
  }
  console.log(rows, sent, sum, reads);
}
process.exit();
