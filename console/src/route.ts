// The address and signals: `#/PAGE?NAME=VALUE&...`. What a page is asked for is in it, so a link
// shows the same elsewhere. Pages read `params` and write with `setParams`.

import { computed, signal } from '@preact/signals';

interface Route {
  page: string;
  params: URLSearchParams;
}

function read(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  return { page: path || 'query', params: new URLSearchParams(query) };
}

const route = signal(read());
addEventListener('hashchange', () => { route.value = read(); });

/** The name of the page. */
export const page = computed(() => route.value.page);

/** The parameters of the page. */
export const params = computed(() => route.value.params);

/** The address of a page, for links. */
export function href(to: string, values: URLSearchParams | Record<string, string> = {}): string {
  const query = new URLSearchParams(values).toString();
  return `#/${to}${query ? `?${query}` : ''}`;
}

/** Goes to a page; `replace` leaves no entry in the history. */
export function go(to: string, values: URLSearchParams | Record<string, string> = {}, replace = false): void {
  const address = href(to, values);
  if (address === location.hash) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', address);
  route.value = read();
}

/** What a parameter becomes: texts, one or several; null takes it away. */
export type Change = Record<string, string | string[] | null>;

/** Changes parameters of this page. */
export function setParams(change: Change, replace = false): void {
  const next = new URLSearchParams(params.peek());
  for (const [name, value] of Object.entries(change)) {
    next.delete(name);
    for (const one of value === null ? [] : [value].flat()) next.append(name, one);
  }
  go(page.peek(), next, replace);
}

addEventListener('popstate', () => { route.value = read(); });
