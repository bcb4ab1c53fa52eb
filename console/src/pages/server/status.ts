// What the server says of itself, and the last minutes of it. The past is that of one run of the
// process: after a restart it begins anew.

import { batch, computed, signal } from '@preact/signals';
import { api, type Failure } from '../../api';
import { noteRefusal } from '../../components/polling';

/** The parts of `/api/v1/status/server` that are shown; docs/api-status.md describes them. */
export interface Status {
  server: { version: string; run_id: string; process_id: number; time_ms: number; uptime_ms: number; directory: string; threads: number; cpu_user_seconds: number; cpu_system_seconds: number };
  state: {
    role: string; ready: boolean; unready_reason: string | null;
    loading: { bytes_done: number; bytes_total: number; percent: number; eta_seconds: number } | null;
    writes_stopped: string | null; out_of_memory: boolean; writes_paused: boolean; reads_paused: boolean;
  };
  clock: { ahead_ms: number; kept_from_ms: number };
  connections: { listeners: { listener: string; open: number; accepted: number; rejected: number }[]; maximum: number; blocked: number };
  tls: { handshakes_failed: number; certificate_expiry_s: number | null };
  commands: { commands: number; bytes_in: number; bytes_out: number };
  samples: {
    series: number; series_created: number; series_expired: number; in_order: number; late: number; duplicate: number; ignored: number; refused: number;
    late_pending: number; settles: number; settles_failed: number; rules_failed: number; sent_by_redis: number;
  };
  intake: { protocol: string; samples: number; refused: Record<string, number> }[];
  errors: { replies: number; by_code: Record<string, number>; denied_logins: number };
  limits: { limit: string; of: string | null; refused: number; last_ms: number | null }[];
  requests: { side: string; places: number; places_used: number; memory_max_bytes: number; memory_used_bytes: number }[];
  long_reads: { threads: number; running: number; waiting: number };
  promql: { running: number; memory_used_bytes: number };
  memory: {
    parts_bytes: Record<string, number>; budget_bytes: number; used_bytes: number; peak_bytes: number; unflushed_bytes: number;
    resident_bytes: number; machine_bytes: number; stalls: number; stalled_ms: number; refused: number;
  };
  log: {
    durability: string; sync_interval_ms: number; segments: number; bytes: number; bytes_written: number;
    oldest_unsynced_ms: number | null; syncs: number; last_sync_us: number; sync_p50_us: number; sync_p99_us: number;
  } | null;
  flushes: { flushes: number; failed: number; last_error: string | null; in_progress: boolean; samples: number; bytes_written: number; last_ms: number };
  merges: {
    failure: string | null; failures: number; busy: number; base_blocks: number; base_bytes: number; late_blocks: number; late_bytes: number;
    base_merges: number; late_merges: number; bytes_written: number; write_amplification: number;
  };
  disk: { budget_bytes: number; used_bytes: number; free_bytes: number | null; total_bytes: number | null; stalls: number; stalled_ms: number; refused: number };
  recovery: { duration_ms: number; clean: boolean; samples: number; log_holes: number; lost_groups: number; lost_blocks: number; damaged_blocks: number; quarantined_files: number };
  backup: { in_progress: boolean; last_status: string | null };
  settings: { name: string; value: string; default: string }[] | null;
}

/** How long the past is kept. */
export const PAST_MS = 600_000;

export const past = signal<Status[]>([]);
export const latest = computed<Status | null>(() => past.value.at(-1) ?? null);
/** Why the last look failed; what was seen before stays. */
export const failure = signal<Failure | null>(null);

/** Looks at the server. */
export async function look(signal: AbortSignal): Promise<void> {
  const outcome = await api<Status>('status/server', {}, { signal });
  if (!outcome.ok) {
    if (outcome.kind === 'aborted') return;
    if (outcome.status === 401 || outcome.status === 403) noteRefusal();
    failure.value = outcome;
    return;
  }
  const now = outcome.data;
  const isSameRun = latest.peek()?.server.run_id === now.server.run_id;
  const kept = isSameRun ? past.peek().filter((one) => one.server.uptime_ms > now.server.uptime_ms - PAST_MS) : [];
  batch(() => {
    past.value = [...kept, now];
    failure.value = null;
  });
}

/** The rate per second of a counter between two looks. */
export function rate(before: Status, after: Status, counter: (status: Status) => number): number | null {
  const passed_s = (after.server.uptime_ms - before.server.uptime_ms) / 1000;
  return passed_s > 0 ? (counter(after) - counter(before)) / passed_s : null;
}

/** Samples that a protocol sent. */
export function sentBy(status: Status, protocol: string): number {
  return protocol === 'redis' ? status.samples.sent_by_redis : status.intake.find((one) => one.protocol === protocol)?.samples ?? 0;
}

export const PROTOCOLS = ['redis', 'influx', 'prometheus', 'otlp', 'opentsdb', 'akumuli'];
