// The answers as JSON, in parts, as one text cannot hold every answer.

import { computed } from '@preact/signals';
import { answers } from './run';

/** A list without objects and lists in it, such as a sample, stands in one line. */
function isFlat(value: object): boolean {
  return Array.isArray(value) && !value.some((one) => typeof one === 'object' && one !== null);
}

function* pieces(value: unknown, indent: string): Generator<string> {
  if (typeof value !== 'object' || value === null || isFlat(value)) return yield JSON.stringify(value);
  const isList = Array.isArray(value);
  const before = `\n${indent}  `;
  let separator = '';
  yield isList ? '[' : '{';
  for (const [name, one] of isList ? value.entries() : Object.entries(value)) {
    yield `${separator}${before}${isList ? '' : `${JSON.stringify(name)}: `}`;
    yield* pieces(one, `${indent}  `);
    separator = ',';
  }
  yield `${separator && `\n${indent}`}${isList ? ']' : '}'}`;
}

const PART_CHARACTERS = 65_536;

/** What was answered, by query. */
export const answered = computed(() => answers.value.flatMap((answer) => (answer?.data ? [{ query: answer.text, data: answer.data }] : [])));

/** A value as JSON, of which the parts are not made before they are taken. */
export function* jsonParts(value: unknown): Generator<string> {
  let part = '';
  for (const piece of pieces(value, '')) {
    part += piece;
    if (part.length < PART_CHARACTERS) continue;
    yield part;
    part = '';
  }
  yield part;
}
