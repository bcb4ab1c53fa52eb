// The text of a query as a link to the Query page.

import { href } from '../../route';

const TEXT_BYTES_MAX = 1024;

/** The server cuts long texts; what is left of them is no query. */
function isCut(text: string): boolean {
  return text.endsWith('...') && new TextEncoder().encode(text).length > TEXT_BYTES_MAX - 3;
}

export function QueryLink({ text, at }: { text: string; at: Record<string, string> }) {
  if (isCut(text)) return <code title={`${text}\nThe server keeps the beginning of long queries only.`}>{text}</code>;
  return <a href={href('query', { q: text, ...at })} title={text}><code>{text}</code></a>;
}
