// What somebody on call has to know first: what is wrong, in the order of how much it hurts.

import { durationText, secondText } from '../../clock';
import { bytes, count, took } from '../../format';
import type { Matter } from '../../components/state';
import { isSameRun, type Status } from './status';

/** A limit that refused something this long ago is not news. */
const RECENT_MS = 600_000;
const NEARLY_FULL = 0.9;
const CLOCK_MS = 1000;
const CERTIFICATE_MS = 14 * 86_400_000;
/** A sync that is later than its interval by this much is not on time. */
const SYNC_MS = 5000;

function ofState({ state, clock, tls, server }: Status): Matter[] {
  const found: Matter[] = [];
  const add = (isTrue: boolean, isError: boolean, text: string) => { if (isTrue) found.push({ isError, text }); };
  add(state.writes_stopped !== null, true, `Writes stopped until the next start: ${state.writes_stopped}`);
  add(state.out_of_memory, true, 'Writes are refused: the memory budget is exhausted. Raise --memory, or remove series.');
  add(!state.ready && state.loading === null && state.unready_reason !== null, true, `Not ready: ${state.unready_reason}`);
  add(state.writes_paused, false, 'Writes are paused by CLIENT PAUSE');
  add(state.reads_paused, false, 'Reads are paused by CLIENT PAUSE');
  add(Math.abs(clock.ahead_ms) > CLOCK_MS, false, `The wall clock is ${count(Math.abs(clock.ahead_ms))} ms ${clock.ahead_ms > 0 ? 'ahead of' : 'behind'} the time that retention trusts`);
  const expiry_ms = (tls.certificate_expiry_s ?? Infinity) * 1000;
  add(expiry_ms < server.time_ms + CERTIFICATE_MS, expiry_ms < server.time_ms, `The certificate ${expiry_ms < server.time_ms ? 'expired' : 'expires'} at ${secondText(expiry_ms)}`);
  return found;
}

function ofStorage({ flushes, merges, disk, memory, samples, backup, log, remote }: Status): Matter[] {
  const found: Matter[] = [];
  const add = (isTrue: boolean, isError: boolean, text: string) => { if (isTrue) found.push({ isError, text }); };
  add(flushes.last_error !== null, true, `The last flush failed: ${flushes.last_error}`);
  add(merges.failure !== null, true, `The last merge failed: ${merges.failure}`);
  add(samples.settles_failed > 0, true, `${count(samples.settles_failed)} settles of late samples failed since the start`);
  if (samples.rules_failed > 0) found.push({ isError: true, text: `${count(samples.rules_failed)} failures of compaction rules since the start`, page: 'compaction' });
  add(backup.last_status !== null && backup.last_status !== 'ok', true, `The last backup failed: ${backup.last_status}`);
  add(typeof remote?.checkpoint_last_error === 'string', true, `The last checkpoint failed: ${remote?.checkpoint_last_error}`);
  const used = memory.used_bytes / memory.budget_bytes;
  add(memory.budget_bytes > 0 && used > NEARLY_FULL, false, `Memory: ${Math.round(used * 100)}% of the budget`);
  const full = disk.used_bytes / disk.budget_bytes;
  add(disk.budget_bytes > 0 && full > 1, false, `Disk: ${Math.round(full * 100)}% of the budget; the oldest samples are removed`);
  const { free_bytes: free, total_bytes: total } = disk;
  add(free !== null && total !== null && free < total * (1 - NEARLY_FULL), free !== null && total !== null && free < total * 0.02,
    `Disk: ${bytes(free ?? 0)} of ${bytes(total ?? 0)} are free`);
  add(disk.lost_blocks > 0, true, `${count(disk.lost_blocks)} blocks are neither here nor in the object store: reads of their samples fail. Restore their objects`);
  const unsynced_ms = log === null || log.durability === 'none' ? null : log.oldest_unsynced_ms;
  add(log !== null && unsynced_ms !== null && unsynced_ms > log.sync_interval_ms + SYNC_MS, true, `The log is not ${remote === null ? 'on disk' : 'in Kafka'}: the oldest write waits for ${took(unsynced_ms ?? 0)}`);
  return found;
}

/** What the last start found. */
function ofStart({ recovery, server }: Status): Matter[] {
  const found: Matter[] = [];
  const damage: [number, string][] = [
    [recovery.log_holes, 'holes in the log'], [recovery.lost_groups, 'groups lost'], [recovery.lost_blocks, 'blocks lost'],
    [recovery.damaged_blocks, 'blocks damaged'], [recovery.quarantined_files, 'files in quarantine'],
  ];
  const seen = damage.filter(([times]) => times > 0).map(([times, what]) => `${count(times)} ${what}`);
  if (seen.length > 0) found.push({ isError: true, text: `Damage was found at the last start: ${seen.join(', ')}` });
  if (server.uptime_ms < RECENT_MS && !recovery.clean && recovery.series > 0) {
    found.push({ isError: false, text: `Started ${durationText(Math.floor(server.uptime_ms / 1000) * 1000)} ago; the stop before was not clean` });
  }
  return found;
}

/** What grew since the page began to look. */
function ofPast(seen: Status[]): Matter[] {
  const now = seen.at(-1)!;
  const first = seen.find((one) => isSameRun(one, now)) ?? now;
  const grown = (counter: (status: Status) => number, what: string): Matter[] => {
    const by = counter(now) - counter(first);
    return by > 0 ? [{ isError: false, text: `${count(by)} ${what} since ${secondText(first.server.time_ms)}` }] : [];
  };
  return [
    ...grown(({ memory }) => memory.stalls, 'writes waited for memory'),
    ...grown(({ disk }) => disk.stalls, 'writes waited for disk space'),
    ...grown(({ flushes }) => flushes.failed, 'flushes failed'),
    ...grown(({ errors }) => errors.denied_logins, 'logins were denied'),
    ...grown(({ samples }) => samples.refused, 'samples were refused by a duplicate policy or for their age'),
  ];
}

/** What senders of other protocols sent in vain. */
function ofSenders({ intake, server }: Status): Matter[] {
  const refusing = intake.filter(({ refused_last_ms: last_ms }) => last_ms !== null && last_ms > server.time_ms - RECENT_MS);
  return refusing.map(({ protocol, refused, refused_last_ms }) => {
    const reasons = Object.entries(refused).filter(([, times]) => times > 0).map(([reason, times]) => `${count(times)} ${reason.replace(/_/g, ' ')}`);
    return { isError: false, text: `Samples of ${protocol} were refused, last at ${secondText(refused_last_ms ?? 0)}: ${reasons.join(', ')} since the start. The log names the sender` };
  });
}

/** Pages that tell what a limit is met by. */
const TOLD: Record<string, string> = { series: 'cardinality', labels: 'cardinality', queries: 'queries' };

function ofLimits({ limits, requests, server }: Status): Matter[] {
  const name = (limit: string, of: string | null) => (of === null ? limit : `${limit} (${of})`);
  const met = limits.filter((one) => one.last_ms !== null && one.last_ms > server.time_ms - RECENT_MS);
  const full = requests.filter((one) => one.places > 0 && one.places_used >= one.places);
  return [
    ...met.map(({ limit, of, last_ms }) => ({ isError: false, page: TOLD[limit], text: `The limit of ${name(limit, of)} refused something, last at ${secondText(last_ms ?? 0)}` })),
    ...full.map(({ side, places }) => ({ isError: false, text: `All ${count(places)} places for requests are taken: ${side}` })),
  ];
}

/** Everything that needs attention, errors first. */
export function matters(seen: Status[]): Matter[] {
  const now = seen.at(-1)!;
  const found = [...ofState(now), ...ofStorage(now), ...ofStart(now), ...ofLimits(now), ...ofSenders(now), ...ofPast(seen)];
  return found.sort((a, b) => Number(b.isError) - Number(a.isError));
}
