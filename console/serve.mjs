// Serves the console from its sources, for work on it: each reload of the page builds it anew.
// Everything else is asked of a server that runs.
//
//   node serve.mjs [PORT] [http://127.0.0.1:8086]

import { createServer, request } from 'node:http';
import { bundle } from './build.mjs';

const [port = '8090', target = 'http://127.0.0.1:8086'] = process.argv.slice(2);
const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
const TYPES = { html: 'text/html', js: 'text/javascript', css: 'text/css', txt: 'text/plain' };

/** The content security policy of the server, if it is there. */
const policy = () => fetch(target, { headers: { accept: 'text/html' } })
  .then(({ headers }) => ({ 'Content-Security-Policy': headers.get('content-security-policy') ?? '' }), () => ({}));

createServer(async (asked, answer) => {
  // The server sees its own name: pages of others, and names that were bent to lead here, are refused here.
  const { host, origin = `http://${host}` } = asked.headers;
  if (!hosts.includes(host) || origin !== `http://${host}`) return void answer.writeHead(403).end();
  const path = asked.url.split('?')[0];
  const name = path === '/' ? 'index.html' : path.replace(/^\/console\//, '');
  if (path === '/' || path.startsWith('/console/')) {
    try {
      const bytes = (await bundle({ minify: false, sourcemap: 'inline' })).get(name);
      answer.writeHead(bytes ? 200 : 404, { 'Content-Type': `${TYPES[name.split('.').pop()]}; charset=utf-8`, ...await policy() });
      answer.end(bytes);
    } catch (error) {
      answer.writeHead(500).end(String(error));
    }
    return;
  }
  const url = new URL(asked.url, target);
  const headers = { ...asked.headers, host: url.host };
  delete headers.origin;
  const passed = request(url, { method: asked.method, headers }, (reply) => {
    answer.writeHead(reply.statusCode, reply.headers);
    reply.pipe(answer);
  });
  passed.on('error', () => answer.writeHead(502).end());
  asked.pipe(passed);
}).listen(Number(port), '127.0.0.1', () => console.log(`http://127.0.0.1:${port}/`));
