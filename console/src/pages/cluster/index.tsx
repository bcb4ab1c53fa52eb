// The Cluster page: who owns the log, who follows it, how far behind each is. In the address:
// `refresh`, a duration or `off`; without it every two seconds.

import { useMemo } from 'preact/hooks';
import { isUnanswered } from '../../ask';
import { secondText } from '../../clock';
import { FigureList } from '../../components/figures';
import { Empty } from '../../components/notice';
import { StateCard, type Kind } from '../../components/state';
import { useWatch, WatchHead } from '../../components/watch';
import { count, took, UNKNOWN } from '../../format';
import { matters } from './attention';
import { Nodes } from './nodes';
import { statusOf, type Cluster } from './status';
import './cluster.css';

function word({ role, owner, takes_reads }: Cluster, isAway: boolean): [text: string, kind: Kind] {
  if (isAway) return ['No answer', 'bad'];
  if (role === 'loading') return ['Loading', 'loading'];
  if (owner === null) return ['No owner', 'bad'];
  if (role === 'owner') return ['Owner', 'good'];
  return takes_reads ? ['Follower', 'good'] : ['Stale', 'bad'];
}

function said(cluster: Cluster): string {
  const { role, owner, members, newest_group, unapplied_groups } = cluster;
  const others = members.length - 1;
  if (role === 'loading') return `${count(newest_group - unapplied_groups)} of ${count(newest_group)} groups of the log are applied. The node answers no reads yet.`;
  if (role === 'owner') return `This node takes writes; ${others === 1 ? 'one other node follows' : `${count(others)} other nodes follow`}.`;
  return owner === null ? '' : `${owner} takes writes. This node answers reads of clients that accept answers of followers, and sends others there.`;
}

function State({ cluster, at_ms, isAway }: { cluster: Cluster; at_ms: number; isAway: boolean }) {
  const [text, kind] = word(cluster, isAway);
  return (
    <StateCard word={text} kind={kind} matters={matters(cluster)}>
      <p class={isAway ? 'hint' : ''}>{isAway ? `It answered last at ${secondText(at_ms)}.` : said(cluster)}</p>
    </StateCard>
  );
}

function ThisNode({ cluster }: { cluster: Cluster }) {
  const { role, since_ms, epoch, owner, behind_ms, max_staleness_ms, takes_reads, takes_writes } = cluster;
  const behind = role === 'owner' ? 'owner of the log' : behind_ms === null ? 'has not had all of the log yet' : took(behind_ms);
  return (
    <section class="card this">
      <h2>This node</h2>
      <FigureList kind="facts" all={[
        ['role', `${role || UNKNOWN}, since ${Number.isNaN(since_ms) ? UNKNOWN : secondText(since_ms)}`],
        ['owner', owner ?? 'not known', owner === null && role !== 'loading'],
        ['epoch', epoch === null ? 'not known' : count(epoch)],
        ['behind', `${behind}; at most ${took(max_staleness_ms)} to answer reads`, role === 'follower' && !takes_reads],
        ['answers', takes_writes ? 'writes and reads' : takes_reads ? 'reads' : 'nothing for now', !takes_reads],
      ]} />
    </section>
  );
}

function Alone() {
  return (
    <Empty title="Not part of a cluster">
      <p>This server is alone. Servers with <code>--cluster on</code> and the same log in Kafka share it: one owns it and takes writes, the others follow, and one of them takes over.</p>
    </Empty>
  );
}

export function ClusterPage() {
  const watch = useWatch();
  const { data, at_ms, failure } = watch;
  const status = useMemo(() => (data === null ? null : statusOf(data)), [data]);
  const seen_ms = status?.server.time_ms || at_ms;
  const away = 'Check that it runs, or look at the console of another node; this page goes on by itself.';
  return (
    <div class="page cluster">
      <WatchHead title="Cluster" watch={watch} seen_ms={status && seen_ms} away={away} />
      {status && status.cluster === null && <Alone />}
      {status?.cluster && (
        <>
          <State cluster={status.cluster} at_ms={seen_ms} isAway={isUnanswered(failure)} />
          <Nodes cluster={status.cluster} />
          <ThisNode cluster={status.cluster} />
        </>
      )}
    </div>
  );
}
