// What an operator has to know of a cluster, and what to do about it.

import type { Matter } from '../../components/state';
import { count, took } from '../../format';
import { isStale, nameOf, type Cluster, type Member } from './status';

/** A node says something at least every 5 s. */
const HEARD_MS = 6000;

function ofThis(cluster: Cluster): Matter[] {
  const found: Matter[] = [];
  const add = (isTrue: boolean, isError: boolean, text: string) => { if (isTrue) found.push({ isError, text }); };
  const { behind_ms, max_staleness_ms, owner, role, takes_reads, members, address_shared_with: twin } = cluster;
  const own = members.find((one) => one.is_this)?.address ?? 'its address';
  add(twin !== null, true, `Another living process (${twin?.slice(0, 8)}) tells others that it is reached at ${own}, as this node does: clients reach one of them for both. `
    + 'Give each server an --advertise of its own');
  add(owner === null && role !== 'loading', true, 'No node owns the log: none takes writes. A node that has all of the log takes over by itself within seconds; '
    + 'if none does, check that the brokers of Kafka answer and that a node runs that is not behind');
  const had = behind_ms === null ? 'has not had all of the log yet' : `had all of the log ${took(behind_ms)} ago, and may be ${took(max_staleness_ms)} behind`;
  add(role === 'follower' && !takes_reads, true, `This node answers no reads: it ${had}. Check its way to Kafka, and its processor and memory`);
  add(members.length === 1, false, 'No other node was heard in the last 15 seconds: none takes over if this one ends');
  return found;
}

function ofOther(member: Member, cluster: Cluster): Matter[] {
  const found: Matter[] = [];
  const name = nameOf(member);
  const had = member.behind_ms === null ? 'has not had all of the log yet' : `had all of the log ${took(member.behind_ms)} ago`;
  if (isStale(member, cluster)) found.push({ isError: false, text: `${name} ${had}: it answers no reads, and does not take over` });
  if (member.heard_ms > HEARD_MS) found.push({ isError: false, text: `${name} was heard ${took(member.heard_ms)} ago: it has ended, or its way to Kafka is cut` });
  return found;
}

/** What is not alike. */
function ofAll({ members }: Cluster): Matter[] {
  const found: Matter[] = [];
  const differ = (what: string, isOne: (member: Member) => boolean, so: string) => {
    const names = members.filter(isOne).map(nameOf);
    if (names.length > 0) found.push({ isError: false, text: `${names.join(', ')} ${names.length === 1 ? 'was' : 'were'} started with other ${what} than this node: ${so}` });
  };
  differ('users', (one) => one.users_differ, 'clients may be refused after a take-over. Give all nodes the same users');
  differ('settings', (one) => one.settings_differ, 'after a take-over clients may see other answers, and samples may be kept or refused otherwise. The column "Differs in" names them; give all nodes the same ones');
  const versions = new Map<string, number>();
  for (const { version } of members) versions.set(version, (versions.get(version) ?? 0) + 1);
  if (versions.size > 1) {
    const each = [...versions].sort().map(([version, nodes]) => `${version} (${count(nodes)})`);
    found.push({ isError: false, text: `Nodes run different versions: ${each.join(', ')}. Restart the others with the newest one, the owner last` });
  }
  return found;
}

/** Everything that needs attention, errors first. */
export function matters(cluster: Cluster): Matter[] {
  const others = cluster.members.filter((one) => !one.is_this);
  const found = [...ofThis(cluster), ...others.flatMap((one) => ofOther(one, cluster)), ...ofAll(cluster)];
  return found.sort((a, b) => Number(b.isError) - Number(a.isError));
}
