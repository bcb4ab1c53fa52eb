// Keys as redis-cli reads them.

/** Bytes that are not UTF-8, as the server shows them. */
const SHOWN = /((?:\\x[89a-f][0-9a-f])+)/;
const PLAIN = /^[\w.:{}=,/@+-]+$/;
const SHORT: Record<string, string> = { '\\': '\\\\', '"': '\\"', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function isUtf8(shown: string): boolean {
  const bytes = shown.slice(2).split('\\x').map((digits) => parseInt(digits, 16));
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(bytes));
    return true;
  } catch {
    return false;
  }
}

/** A letter that is a sign of its own in quotes, or does not print, as its bytes. */
function escaped(letter: string): string {
  if (SHORT[letter]) return SHORT[letter];
  if (letter === ' ' || !/[\p{C}\p{Z}]/u.test(letter)) return letter;
  return Array.from(new TextEncoder().encode(letter), (byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
}

/**
 * The key as one word of a line. `\xff` stands for a byte, as the server shows one; a run of them
 * that would be UTF-8 can only be the letters themselves. As a pattern it matches this key alone.
 */
export function redisKey(key: string, isPattern = false): string {
  if (PLAIN.test(key)) return key;
  const letters = (text: string) => Array.from(isPattern ? text.replace(/[*?[\]\\]/g, '\\$&') : text, escaped);
  const parts = key.split(SHOWN).map((part, at) => (at % 2 === 1 && !isUtf8(part) ? part : letters(part).join('')));
  return `"${parts.join('')}"`;
}
