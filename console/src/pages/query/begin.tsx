// The Query page before the first query: the metrics of this server, and queries made from them.

import { useAnswer } from '../../ask';
import { metadataOf, type Metadata } from '../../components/names';
import { Empty, ErrorBox, NoSeries } from '../../components/notice';
import { count, seriesText } from '../../format';
import { href } from '../../route';
import { useText } from './drafts';

/** Metrics that are asked for, and those that are listed. */
const ASKED_MAX = 1000;
const LISTED_MAX = 24;

interface Example {
  text: string;
  about: string;
}

const text = (name: string) => seriesText({ __name__: name });

/** A query for the first metric of each kind. */
function examplesOf(names: string[], metadata: Metadata): Example[] {
  const kind = (name: string) => metadataOf(metadata, name)?.type;
  const isPart = (name: string) => /_(bucket|count|sum)$/.test(name);
  const buckets = names.find((name) => name.endsWith('_bucket'));
  const counter = names.find((name) => kind(name) === 'counter') ?? names.find((name) => name.endsWith('_total'));
  const gauge = names.find((name) => kind(name) === 'gauge') ?? names.find((name) => name !== counter && !isPart(name) && !name.endsWith('_total'));
  const found: Example[] = [];
  if (gauge !== undefined) {
    found.push({ text: `avg_over_time(${text(gauge)}[5m])`, about: 'the mean of the last 5 minutes' }, { text: `topk(5, ${text(gauge)})`, about: 'the 5 highest series' });
  }
  if (counter !== undefined) found.push({ text: `sum(rate(${text(counter)}[5m]))`, about: 'a counter per second, of all series' });
  if (buckets !== undefined) found.push({ text: `histogram_quantile(0.99, sum by (le) (rate(${text(buckets)}[5m])))`, about: '99 % are no higher' });
  return found;
}

function Choices({ title, all }: { title: string; all: Example[] }) {
  return (
    <section>
      <h3>{title}</h3>
      <ul>
        {all.map((one) => <li key={one.text}><button type="button" class="quiet" onClick={() => useText(one.text)}><code>{one.text}</code>{one.about && <small>{one.about}</small>}</button></li>)}
      </ul>
    </section>
  );
}

export function Begin() {
  const { data: names, failure, again } = useAnswer<string[]>('label/__name__/values', { limit: ASKED_MAX });
  const { data: metadata } = useAnswer<Metadata>('metadata', { limit: ASKED_MAX });
  if (names?.length === 0) return <NoSeries then="ask for it above" />;
  return (
    <Empty title="No query yet">
      <p>Type the name of a metric above: names are completed from this server. Enter runs the query.</p>
      {failure && <ErrorBox failure={failure} retry={again} />}
      {names && (
        <div class="begin">
          <Choices title="Metrics" all={names.slice(0, LISTED_MAX).map((name) => ({ text: text(name), about: metadataOf(metadata ?? {}, name)?.help ?? '' }))} />
          <Choices title="Examples" all={examplesOf(names, metadata ?? {})} />
        </div>
      )}
      {names && names.length > LISTED_MAX && (
        <p><a href={href('cardinality')}>{names.length === ASKED_MAX ? `More than ${count(ASKED_MAX)}` : `All ${count(names.length)}`} metrics</a></p>
      )}
    </Empty>
  );
}
