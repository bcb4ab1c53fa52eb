// What is shown, as lines for redis-cli.

import { CopyLine } from '../../components/copyline';
import type { Span } from '../../components/span';
import { redisKey } from './rediskey';

export function Commands({ name, span }: { name: string; span: Span }) {
  const key = redisKey(name);
  return (
    <section class="card commands" aria-labelledby="commands">
      <h2 id="commands">At the prompt of redis-cli</h2>
      <CopyLine label="TS.RANGE" text={`TS.RANGE ${key} ${Math.ceil(span.from_ms)} ${Math.floor(span.to_ms)}`} />
      <CopyLine label="TS.INFO" text={`TS.INFO ${key}`} />
    </section>
  );
}
