// The frame of every page: navigation, who is logged in, the theme, and what holds everywhere
// (the login, the server being away, keys).

import { useEffect } from 'preact/hooks';
import { isClustered, loginNeeded, logout, look, reachable, user } from './api';
import { zone } from './clock';
import { Boundary } from './components/boundary';
import { Empty } from './components/notice';
import { Login } from './login';
import { PAGES, type Page } from './pages';
import { href, page } from './route';
import { theme, type Theme } from './theme';

const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };

function Tools() {
  return (
    <div class="tools">
      {user.value === null
        ? <button type="button" class="quiet" onClick={() => { loginNeeded.value = ''; }}>Log in</button>
        : <button type="button" class="quiet" onClick={logout} title="Forget the password">Log out {user.value}</button>}
      <button type="button" class="quiet" onClick={() => { zone.value = zone.value === 'utc' ? 'local' : 'utc'; }}
        title="The clock that times are shown in">Times: {zone.value === 'utc' ? 'UTC' : 'local'}</button>
      <button type="button" class="quiet" onClick={() => { theme.value = NEXT[theme.value]; }}
        title="Dark or light">Theme: {theme.value}</button>
      <a class="quiet" href="console/notices.txt" target="_blank" rel="noreferrer">Licenses</a>
    </div>
  );
}

function NoPage() {
  return <Empty title="No such page"><p>The address names <code>{page.value}</code>. The pages are in the navigation.</p></Empty>;
}

function current(): Omit<Page, 'key'> {
  const named = PAGES.find((one) => one.name === page.value);
  if (named) return named;
  return page.value === '' ? PAGES[0]! : { name: page.value, title: 'No such page', view: NoPage };
}

/** The pages that the navigation has. */
const offered = () => PAGES.filter((one) => !one.isOfNodes || isClustered.value);

/** The longest time between `g` and a letter, and the shortest between a letter and `g`: who types
 * `histogram` beside a field goes nowhere. */
const PAIR_MS = 1000;

/** `g` and a letter go to a page, unless somebody is typing. */
function useKeys() {
  useEffect(() => {
    let begun_ms = -Infinity;
    let other_ms = -Infinity;
    const pressed = (event: KeyboardEvent) => {
      const target = event.composedPath()[0];
      const isTyping = target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      const now_ms = performance.now();
      const to = now_ms - begun_ms < PAIR_MS ? offered().find((one) => one.key === event.key) : undefined;
      const isBegin = event.key === 'g' && now_ms - other_ms >= PAIR_MS;
      begun_ms = isBegin ? now_ms : -Infinity;
      if (!isBegin && !to && event.key.length === 1) other_ms = now_ms;
      if (to) location.hash = href(to.name);
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);
}

/** How often a server that is away is looked for, also on pages that ask for nothing. */
const AWAY_MS = 2000;

/** Asks what the server is; while it is away, until it answers anything: then the banner goes. */
function useLook() {
  const isAway = !reachable.value;
  useEffect(() => {
    if (!isAway) return void look();
    const timer = setInterval(look, AWAY_MS);
    return () => clearInterval(timer);
  }, [isAway]);
}

export function Shell() {
  useKeys();
  useLook();
  const shown = current();
  useEffect(() => { document.title = `${shown.title} - Latewood`; }, [shown]);
  const View = shown.view;
  return (
    <div class="shell">
      <nav class="navigation" aria-label="Pages">
        <a class="brand" href={href('query')}>
          <svg viewBox="0 0 32 32" aria-hidden="true"><circle cx="16" cy="16" r="14" /><circle cx="16" cy="16" r="9" /><circle cx="16" cy="16" r="4" /></svg>
          Latewood
        </a>
        <ul>
          {offered().map((one) => (
            <li key={one.name}>
              <a href={href(one.name)} aria-current={one === shown ? 'page' : undefined} title={`Keys: g ${one.key}`}>{one.title}</a>
            </li>
          ))}
        </ul>
        <Tools />
      </nav>
      <main>
        {!reachable.value && (
          <p class="banner" role="status">The server does not answer. What is shown is the last that it said.</p>
        )}
        <Boundary key={shown.name}><View /></Boundary>
      </main>
      {loginNeeded.value !== null && <Login />}
    </div>
  );
}
