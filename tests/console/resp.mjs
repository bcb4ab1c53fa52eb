// A connection of the Redis protocol, for what HTTP cannot write: keys, rules, users.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';

/** A reply in `bytes` at `at` and where it ends; null where it is not complete. */
function reply(bytes, at) {
  const end = bytes.indexOf('\r\n', at);
  if (end < 0) return null;
  const [kind, text] = [String.fromCharCode(bytes[at]), bytes.toString('latin1', at + 1, end)];
  let next = end + 2;
  if (kind === '$' && text !== '-1') {
    const last = next + Number(text);
    return bytes.length < last + 2 ? null : [bytes.toString('utf8', next, last), last + 2];
  }
  if (kind !== '*') return [kind === '$' ? null : kind + text, next];
  const items = [];
  for (let count = Number(text); count > 0; count--) {
    const item = reply(bytes, next);
    if (!item) return null;
    items.push(item[0]);
    next = item[1];
  }
  return [items, next];
}

/** Sends commands, lists of words or buffers, together; their replies, none of which may be an error. */
export async function commands(server, list) {
  const socket = connect(server.ports[0], '127.0.0.1');
  await once(socket, 'connect');
  const bulk = (word) => {
    const bytes = Buffer.isBuffer(word) ? word : Buffer.from(String(word));
    return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')];
  };
  socket.write(Buffer.concat(list.flatMap((words) => [Buffer.from(`*${words.length}\r\n`), ...words.flatMap(bulk)])));
  const replies = [];
  let [bytes, at] = [Buffer.alloc(0), 0];
  for await (const part of socket) {
    bytes = Buffer.concat([bytes.subarray(at), part]);
    at = 0;
    for (let found = reply(bytes, at); found; found = reply(bytes, at)) {
      replies.push(found[0]);
      at = found[1];
    }
    if (replies.length === list.length) break;
  }
  for (const one of replies) assert.doesNotMatch(String(one), /^-/);
  return replies;
}
