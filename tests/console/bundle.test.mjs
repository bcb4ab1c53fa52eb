// The assets that the server contains are what console/ makes, and what serves them for work on it.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { using } from './harness.mjs';

const CONSOLE = fileURLToPath(new URL('../../console', import.meta.url));

function run(...command) {
  const { status, stdout, stderr } = spawnSync(command[0], command.slice(1), { cwd: CONSOLE, encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}${stderr}`);
}

test('the assets are what the sources make, byte for byte', () => run('node', 'build.mjs', '--check'));

test('the types are sound', () => run('node', 'node_modules/typescript/bin/tsc', '--noEmit', '-p', '.'));

test('no source sets HTML', () => {
  const files = readdirSync(join(CONSOLE, 'src'), { recursive: true, encoding: 'utf8' });
  const found = files.filter((file) => /\.tsx?$/.test(file)
    && /innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|createContextualFragment|srcdoc|document\.write/i.test(readFileSync(join(CONSOLE, 'src', file), 'utf8')));
  assert.deepEqual(found, []);
});

test('serve.mjs refuses other names and origins, and sends the policy of the server', () => using(['--wal', 'off'], async (server) => {
  const unused = createServer().listen(0, '127.0.0.1');
  await once(unused, 'listening');
  const { port } = unused.address();
  unused.close();
  const served = spawn('node', ['serve.mjs', port, server.address], { cwd: CONSOLE, stdio: ['ignore', 'pipe', 'inherit'] });
  const ask = async (path, headers) => {
    const [answer] = await once(get({ host: '127.0.0.1', port, path, headers }), 'response');
    answer.resume();
    return answer;
  };
  try {
    await once(served.stdout, 'data');
    const own = await ask('/', {});
    assert.equal(own.statusCode, 200);
    assert.match(String(own.headers['content-security-policy']), /default-src/);
    assert.equal((await ask('/-/ready', { origin: `http://127.0.0.1:${port}` })).statusCode, 200);
    for (const headers of [{ host: 'evil.example' }, { origin: 'http://evil.example' }]) {
      for (const path of ['/', '/-/ready']) assert.equal((await ask(path, headers)).statusCode, 403);
    }
  } finally {
    served.kill();
  }
}));
