// Builds the console's assets, which the server embeds.
//
//   node build.mjs          writes crates/server/assets/console
//   node build.mjs --check  fails if what lies there is not what the sources make
//
// Each asset is stored compressed, once with brotli and once with gzip. Compressors of different
// versions of Node.js differ, so --check compares what is inside, byte for byte.

import { build } from 'esbuild';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, brotliDecompressSync, constants, gunzipSync, gzipSync } from 'node:zlib';

const HERE = dirname(fileURLToPath(import.meta.url));
const ASSETS = join(HERE, '../crates/server/assets/console');

/** What esbuild makes of the sources: contents by name, and the packages that went in. */
export async function bundle(options = {}) {
  const made = await build({
    absWorkingDir: HERE,
    entryPoints: { console: 'src/main.tsx' },
    bundle: true,
    minify: true,
    format: 'esm',
    target: ['chrome110', 'firefox110', 'safari16'],
    legalComments: 'none',
    charset: 'utf8',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    outdir: 'out',
    write: false,
    metafile: true,
    ...options,
  });
  const assets = new Map(made.outputFiles.map((file) => [file.path.split('/').pop(), Buffer.from(file.contents)]));
  assets.set('index.html', readFileSync(join(HERE, 'src/index.html')));
  assets.set('notices.txt', Buffer.from(notices(packages(Object.keys(made.metafile.inputs)))));
  return assets;
}

/** The packages that files come from. */
function packages(files) {
  const names = files.map((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]);
  return [...new Set(names.filter(Boolean))].sort();
}

/** Name, version and license of each package. */
function notices(names) {
  const parts = names.map((name) => {
    const folder = join(HERE, 'node_modules', name);
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice)/i.test(file)).sort();
    const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim());
    return `${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`;
  });
  return `The console contains these packages.\n\n${parts.join(`\n${'-'.repeat(80)}\n\n`)}`;
}

const ENCODINGS = {
  br: {
    pack: (bytes) => brotliCompressSync(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 22, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
    unpack: brotliDecompressSync,
  },
  gz: { pack: (bytes) => gzipSync(bytes, { level: 9, memLevel: 9 }), unpack: gunzipSync },
};

function write(assets) {
  mkdirSync(ASSETS, { recursive: true });
  for (const [name, bytes] of assets) {
    const sizes = Object.entries(ENCODINGS).map(([ending, { pack }]) => {
      const packed = pack(bytes);
      writeFileSync(join(ASSETS, `${name}.${ending}`), packed);
      return `${packed.length} ${ending}`;
    });
    console.log(`${name}: ${bytes.length} bytes, ${sizes.join(', ')}`);
  }
}

function check(assets) {
  const expected = [...assets.keys()].flatMap((name) => Object.keys(ENCODINGS).map((ending) => `${name}.${ending}`));
  const found = readdirSync(ASSETS);
  const stale = [...new Set([...expected, ...found])].filter((file) => {
    const at = file.lastIndexOf('.');
    const encoding = ENCODINGS[file.slice(at + 1)];
    const wanted = assets.get(file.slice(0, at));
    return !encoding || !wanted || !found.includes(file) || !encoding.unpack(readFileSync(join(ASSETS, file))).equals(wanted);
  });
  if (stale.length > 0) {
    console.error(`${stale.join(', ')}: not what console/ makes; run npm ci and node build.mjs there`);
    process.exit(1);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const assets = await bundle();
  process.argv.includes('--check') ? check(assets) : write(assets);
}
