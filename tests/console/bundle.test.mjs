// The assets that the server contains are what console/ makes.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

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
