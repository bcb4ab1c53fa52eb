// Requests to this server. Errors are values; a login that is missing shows the dialog of
// login.tsx, and `session` changes when somebody logs in, so that pages ask again.

import { signal } from '@preact/signals';

/** What went wrong, in the server's words. */
export interface Failure {
  /** The status, or 0 where there was no answer. */
  status: number;
  /** `bad_data`, `execution`, `timeout`, ...; `network` or `aborted` where there was no answer. */
  kind: string;
  text: string;
}

/** What came back. */
export type Outcome<T> =
  | { ok: true; data: T; warnings: string[]; infos: string[]; took_ms: number }
  | ({ ok: false } & Failure);

export interface Credentials {
  user: string;
  password: string;
}

/** Counts logins: what reads it is asked again after one. */
export const session = signal(0);
/** Who is logged in; the password is in memory only. */
export const user = signal<string | null>(null);
/** Why a login is needed; null while none is. */
export const loginNeeded = signal<string | null>(null);
/** Whether the last request reached the server. */
export const reachable = signal(true);
/** Whether the server is a node of a cluster. */
export const isClustered = signal(false);

let credentials: Credentials | null = null;
/** The session in which the user goes on without a login; the error says what is missing. */
let declined = -1;

/** Uses these from now on. */
export function login(given: Credentials): void {
  credentials = given;
  user.value = given.user;
  loginNeeded.value = null;
  session.value++;
}

/** Forgets them. */
export function logout(): void {
  credentials = null;
  user.value = null;
  session.value++;
}

/** Goes on without a login. */
export function declineLogin(): void {
  declined = session.peek();
  loginNeeded.value = null;
}

/** A browser's own login must not outlive Log out. With TLS it stays: without it no client certificate is shown. */
const OWN: RequestCredentials = location.protocol === 'http:' ? 'omit' : 'same-origin';

function headers(credentials: Credentials | null): Headers {
  // The server sends no challenge to such requests, so that the browser shows no dialog of its own.
  const made = new Headers({ 'X-Latewood-Console': '1' });
  if (credentials) {
    const bytes = new TextEncoder().encode(`${credentials.user}:${credentials.password}`);
    made.set('Authorization', `Basic ${btoa(String.fromCharCode(...bytes))}`);
  }
  return made;
}

/** Parameters of a request; undefined and empty ones are left out. */
export type Parameters = Record<string, string | number | string[] | undefined>;

function form(parameters: Parameters): URLSearchParams {
  const made = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === '') continue;
    for (const one of [value].flat()) made.append(name, String(one));
  }
  return made;
}

/** How a request is made. */
export interface Options {
  method?: 'GET' | 'POST';
  /** Instead of who is logged in; to check a login. */
  as?: Credentials;
  signal?: AbortSignal;
}

/** Sends a request; a failure where the answer is none or an error. */
export async function send(path: string, parameters: Parameters = {}, options: Options = {}): Promise<Response | Failure> {
  const { method = 'GET', signal, as = credentials } = options;
  const query = form(parameters);
  const asked = session.peek();
  const url = method === 'GET' && query.size > 0 ? `${path}?${query}` : path;
  try {
    const answer = await fetch(url, { method, headers: headers(as), body: method === 'POST' ? query : undefined, signal, cache: 'no-store', credentials: OWN });
    reachable.value = true;
    const failure = answer.ok ? null : await refused(answer);
    // What was asked before a login, or is no longer wanted, needs none.
    const isCurrent = asked === session.peek() && asked !== declined && !signal?.aborted;
    if (failure?.status === 401 && !options.as && isCurrent) loginNeeded.value = failure.text;
    return failure ?? answer;
  } catch (error) {
    if (signal?.aborted) return { status: 0, kind: 'aborted', text: 'cancelled' };
    reachable.value = false;
    return { status: 0, kind: 'network', text: `the server does not answer (${error instanceof Error ? error.message : 'no connection'})` };
  }
}

/** Looks whether the server is there, and what it is. It needs no login. */
export async function look(): Promise<void> {
  const answer = await send('-/healthy');
  if (answer instanceof Response) isClustered.value = answer.headers.has('Latewood-Role');
}

async function refused(answer: Response): Promise<Failure> {
  const body = await answer.text().catch(() => '');
  let text = body.trim() || `${answer.status} ${answer.statusText}`;
  let kind = 'error';
  try {
    const parsed = JSON.parse(body) as { error?: string; errorType?: string; code?: string };
    text = parsed.error ?? text;
    kind = parsed.errorType ?? parsed.code ?? kind;
  } catch { /* not JSON: the text is the message */ }
  return { status: answer.status, kind, text };
}

/** The `data` of an answer of Prometheus' API, at `path` under `/api/v1/`. */
export async function api<T>(path: string, parameters: Parameters = {}, options: Options = {}): Promise<Outcome<T>> {
  const began = performance.now();
  const answer = await send(`api/v1/${path}`, parameters, options);
  if (!(answer instanceof Response)) return { ok: false, ...answer };
  try {
    const body = await answer.json() as { data: T; warnings?: string[]; infos?: string[] };
    return { ok: true, data: body.data, warnings: body.warnings ?? [], infos: body.infos ?? [], took_ms: performance.now() - began };
  } catch (error) {
    if (options.signal?.aborted) return { ok: false, status: 0, kind: 'aborted', text: 'cancelled' };
    return { ok: false, status: answer.status, kind: 'network', text: `the answer is not complete (${String(error)})` };
  }
}
