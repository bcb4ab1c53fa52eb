// What the server says of itself, and the last minutes of it. Rates are differences of two looks
// at one run of the process: a restart is a gap.

import { signal } from '@preact/signals';
import { session } from '../../api';
import { Maybe, Named, shaped, type Shaped } from '../../shape';

/** A number that the server does not give is no number: texts show it as a dash. */
const NUMBER: number = NaN;
const TEXT: string = '';
const FLAG: boolean = false;

/** The parts of `/api/v1/status/server` that are shown; docs/api-status.md describes them. */
const SHAPE = {
  server: { version: TEXT, run_id: TEXT, process_id: NUMBER, time_ms: NUMBER, uptime_ms: NUMBER, directory: TEXT, threads: NUMBER, cpu_user_seconds: NUMBER, cpu_system_seconds: NUMBER },
  state: {
    ready: FLAG, unready_reason: new Maybe(TEXT), writes_stopped: new Maybe(TEXT), out_of_memory: FLAG,
    loading: new Maybe({ bytes_done: NUMBER, bytes_total: NUMBER, percent: NUMBER, eta_seconds: NUMBER }),
    writes_paused: FLAG, reads_paused: FLAG,
  },
  clock: { ahead_ms: NUMBER, kept_from_ms: NUMBER },
  connections: { listeners: [{ listener: TEXT, open: NUMBER, accepted: NUMBER, rejected: NUMBER }], maximum: NUMBER, blocked: NUMBER },
  tls: { certificate_expiry_s: new Maybe(NUMBER) },
  commands: { commands: NUMBER },
  samples: {
    series: NUMBER, series_created: NUMBER, series_expired: NUMBER, series_ended: NUMBER, in_order: NUMBER, late: NUMBER, duplicate: NUMBER, ignored: NUMBER, refused: NUMBER, refused_total: NUMBER,
    late_pending: NUMBER, settles_failed: NUMBER, rules_failed: NUMBER, sent_by_redis: NUMBER,
  },
  intake: [{ protocol: TEXT, samples: NUMBER, refused: new Named(NUMBER), refused_last_ms: new Maybe(NUMBER) }],
  reads: [{ requests: NUMBER, failed: NUMBER }],
  errors: { replies: NUMBER, by_code: new Named(NUMBER), denied_logins: NUMBER, denied_commands: NUMBER, denied_keys: NUMBER },
  limits: [{ limit: TEXT, of: new Maybe(TEXT), refused: NUMBER, last_ms: new Maybe(NUMBER) }],
  requests: [{ side: TEXT, places: NUMBER, places_used: NUMBER, memory_used_bytes: NUMBER }],
  long_reads: { running: NUMBER, waiting: NUMBER },
  promql: { running: NUMBER, memory_used_bytes: NUMBER },
  memory: {
    parts_bytes: new Named(NUMBER), budget_bytes: NUMBER, used_bytes: NUMBER, peak_bytes: NUMBER, unflushed_bytes: NUMBER,
    resident_bytes: NUMBER, machine_bytes: NUMBER, stalls: NUMBER, stalled_ms: NUMBER, refused: NUMBER,
  },
  log: new Maybe({
    durability: TEXT, sync_interval_ms: NUMBER, segments: NUMBER, bytes: NUMBER, bytes_written: NUMBER,
    oldest_unsynced_ms: new Maybe(NUMBER), syncs: NUMBER, last_sync_us: NUMBER, sync_p50_us: NUMBER, sync_p99_us: NUMBER,
  }),
  remote: new Maybe({
    epoch: NUMBER, queued_bytes: NUMBER, log_bytes: NUMBER, checkpoints: NUMBER, checkpoints_failed: NUMBER, checkpoint_last_error: new Maybe(TEXT),
    checkpoint_last_ms: NUMBER, checkpoint_time_ms: new Maybe(NUMBER), checkpoint_bytes: new Maybe(NUMBER),
  }),
  flushes: { flushes: NUMBER, failed: NUMBER, last_error: new Maybe(TEXT), in_progress: FLAG, samples: NUMBER, bytes_written: NUMBER, last_ms: NUMBER },
  merges: {
    failure: new Maybe(TEXT), failures: NUMBER, busy: NUMBER, paused: NUMBER, base_blocks: NUMBER, base_bytes: NUMBER, late_blocks: NUMBER, late_bytes: NUMBER,
    base_merges: NUMBER, late_merges: NUMBER, bytes_written: NUMBER, write_amplification: NUMBER,
  },
  disk: { budget_bytes: NUMBER, used_bytes: NUMBER, free_bytes: new Maybe(NUMBER), total_bytes: new Maybe(NUMBER), stalls: NUMBER, stalled_ms: NUMBER, refused: NUMBER, lost_blocks: NUMBER },
  recovery: { duration_ms: NUMBER, clean: FLAG, samples: NUMBER, series: NUMBER, log_holes: NUMBER, lost_groups: NUMBER, lost_blocks: NUMBER, damaged_blocks: NUMBER, quarantined_files: NUMBER },
  backup: { in_progress: FLAG, last_status: new Maybe(TEXT), last_duration_ms: new Maybe(NUMBER) },
  settings: new Maybe([{ name: TEXT, value: TEXT, default: TEXT }]),
};

export type Status = Shaped<typeof SHAPE>;

/** How long the past is kept. */
export const PAST_MS = 600_000;

/** What was seen, the oldest first; it outlives the page, so that coming back shows it. */
export const past = signal<Status[]>([]);
// What one user saw is not for the next.
session.subscribe(() => { past.value = []; });

/** Adds an answer to the past. */
export function note(answer: unknown): void {
  const now = shaped(answer, SHAPE);
  if (Number.isNaN(now.server.time_ms)) now.server.time_ms = Date.now();
  const { time_ms } = now.server;
  // A clock that was set back would draw lines backwards.
  const kept = past.peek().filter((one) => one.server.time_ms > time_ms - PAST_MS && one.server.time_ms < time_ms);
  past.value = [...kept, now];
}

export const isSameRun = (before: Status, after: Status) => before.server.run_id === after.server.run_id;

/** By how much a counter grew per second between two looks; null where it began anew. */
export function rate(before: Status, after: Status, counter: (status: Status) => number): number | null {
  const passed_s = (after.server.uptime_ms - before.server.uptime_ms) / 1000;
  const grown = counter(after) - counter(before);
  return isSameRun(before, after) && passed_s > 0 && grown >= 0 ? grown / passed_s : null;
}

/** Samples that a protocol sent. */
export function sentBy(status: Status, protocol: string): number {
  return protocol === 'redis' ? status.samples.sent_by_redis : status.intake.find((one) => one.protocol === protocol)?.samples ?? NaN;
}

export const PROTOCOLS = ['redis', 'influx', 'prometheus', 'otlp', 'opentsdb', 'akumuli'];
