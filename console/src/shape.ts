// Answers as the page needs them: what is missing, `null` or of another kind in an answer becomes
// what the shape has in its place, so that a server of another version breaks nothing.

/** May be `null`. */
export class Maybe<S> {
  readonly kind = 'maybe';
  constructor(readonly shape: S) {}
}

/** An object with any names. */
export class Named<S> {
  readonly kind = 'named';
  constructor(readonly shape: S) {}
}

/** What has this shape; a list is written as a list of one. */
export type Shaped<S> =
  S extends Maybe<infer T> ? Shaped<T> | null
    : S extends Named<infer T> ? Record<string, Shaped<T>>
      : S extends (infer T)[] ? Shaped<T>[]
        : S extends number ? number
          : S extends string ? string
            : S extends boolean ? boolean
              : { [K in keyof S]: Shaped<S[K]> };

type Object = Record<string, unknown>;

const objectOf = (given: unknown): Object => (typeof given === 'object' && given !== null ? given as Object : {});

function fitted(given: unknown, shape: unknown): unknown {
  if (shape instanceof Maybe) return given === null || given === undefined ? null : fitted(given, shape.shape);
  if (shape instanceof Named) return Object.fromEntries(Object.entries(objectOf(given)).map(([name, value]) => [name, fitted(value, shape.shape)]));
  if (Array.isArray(shape)) return Array.isArray(given) ? given.map((one) => fitted(one, shape[0])) : [];
  if (typeof shape !== 'object') return typeof given === typeof shape ? given : shape;
  const found = objectOf(given);
  return Object.fromEntries(Object.entries(objectOf(shape)).map(([name, part]) => [name, fitted(found[name], part)]));
}

/** `given` in this shape. */
export function shaped<S>(given: unknown, shape: S): Shaped<S> {
  return fitted(given, shape) as Shaped<S>;
}
