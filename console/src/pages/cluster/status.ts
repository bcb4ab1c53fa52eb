// What a node says of its cluster.

import { Maybe, shaped, type Shaped } from '../../shape';

/** A number that the server does not give is no number: texts show it as a dash. */
const NUMBER: number = NaN;
const TEXT: string = '';
const FLAG: boolean = false;

/** The parts of `/api/v1/status/server` that are shown; docs/api-status.md describes them. */
const SHAPE = {
  server: { time_ms: NUMBER },
  cluster: new Maybe({
    role: TEXT, since_ms: NUMBER, epoch: new Maybe(NUMBER), owner: new Maybe(TEXT), behind_ms: new Maybe(NUMBER),
    newest_group: NUMBER, unapplied_groups: NUMBER, max_staleness_ms: NUMBER, takes_reads: FLAG, takes_writes: FLAG,
    address_shared_with: new Maybe(TEXT),
    members: [{
      id: TEXT, is_this: FLAG, address: TEXT, read_address: TEXT, http_address: TEXT, version: TEXT, role: TEXT, since_ms: NUMBER,
      behind_ms: new Maybe(NUMBER), caught_up: FLAG, applied_group: NUMBER, heard_ms: NUMBER, users_differ: FLAG, settings_differ: FLAG,
      settings_differing: [TEXT],
    }],
  }),
};

export type Status = Shaped<typeof SHAPE>;
export type Cluster = NonNullable<Status['cluster']>;
export type Member = Cluster['members'][number];

export const statusOf = (answer: unknown): Status => shaped(answer, SHAPE);

/** A node as people know it. */
export const nameOf = ({ address, id }: Member) => address || id.slice(0, 8);

/** Whether a node answers no reads, as far as this one knows. */
export function isStale({ role, is_this, caught_up }: Member, { takes_reads }: Cluster): boolean {
  return role !== 'owner' && !(is_this ? takes_reads : caught_up);
}
