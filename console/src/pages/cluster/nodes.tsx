// The nodes of a cluster, a row each.

import { secondText } from '../../clock';
import { Table, type Column } from '../../components/table';
import { count, took, UNKNOWN } from '../../format';
import { isStale, nameOf, type Cluster, type Member } from './status';

/** Addresses come from the log: what is none is no link. */
const ADDRESS = /^(https:\/\/)?([\w.-]+|\[[\da-f:.]+\]):\d{1,5}$/i;

/** The console of a node; null where it has none. */
function consoleOf({ http_address: address }: Member): string | null {
  if (!ADDRESS.test(address)) return null;
  return `${address.startsWith('https://') ? '' : 'http://'}${address}/#/cluster`;
}

function Node({ member }: { member: Member }) {
  const [name, link] = [nameOf(member), member.is_this ? null : consoleOf(member)];
  if (member.is_this) return <b title={member.id}>{name} (this)</b>;
  return link === null ? <span title={member.id}>{name}</span> : <a href={link} title={`The console of ${name}`} target="_blank" rel="noreferrer">{name}</a>;
}

function differing({ users_differ, settings_differ, settings_differing: parts }: Member): string {
  const settings = parts.length > 0 ? parts.join(', ') : 'settings';
  return [users_differ && 'users', settings_differ && settings].filter(Boolean).join(', ');
}

const columns = (cluster: Cluster): Column<Member>[] => [
  { name: 'node', title: 'Node', by: nameOf, cell: (row) => <Node member={row} /> },
  { name: 'role', title: 'Role', by: (row) => row.role, cell: (row) => row.role, width: '92px' },
  { name: 'since', title: 'Since', by: (row) => row.since_ms, cell: (row) => (Number.isNaN(row.since_ms) ? UNKNOWN : secondText(row.since_ms)), width: '176px' },
  {
    name: 'behind', title: 'Behind', by: (row) => row.behind_ms ?? NaN, isNumber: true, width: '100px',
    cell: (row) => <span class={isStale(row, cluster) ? 'warn' : ''}>{row.role === 'owner' ? UNKNOWN : row.behind_ms === null ? 'not yet' : took(row.behind_ms)}</span>,
  },
  {
    name: 'unapplied', title: 'Not applied', by: (row) => cluster.newest_group - row.applied_group, isNumber: true, width: '112px',
    cell: (row) => <span title={`Groups of the log: ${count(row.applied_group)} of ${count(cluster.newest_group)} are applied`}>{count(Math.max(0, cluster.newest_group - row.applied_group))}</span>,
  },
  { name: 'heard', title: 'Heard', by: (row) => row.heard_ms, isNumber: true, width: '124px', cell: (row) => (row.is_this ? UNKNOWN : `${took(row.heard_ms)} ago`) },
  { name: 'version', title: 'Version', by: (row) => row.version, cell: (row) => row.version || UNKNOWN, width: '92px' },
  { name: 'differs', title: 'Differs in', by: differing, cell: (row) => <span class="warn">{differing(row)}</span>, width: '136px' },
];

export function Nodes({ cluster }: { cluster: Cluster }) {
  return (
    <section class="card" aria-label="Nodes">
      <h2>Nodes</h2>
      <p class="hint">Those that were heard in the last 15 seconds. What is known of others is what they said last.</p>
      <Table label="Nodes of the cluster" columns={columns(cluster)} rows={cluster.members} id={(row) => row.id} />
    </section>
  );
}
