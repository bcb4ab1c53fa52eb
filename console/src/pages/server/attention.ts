// What somebody on call has to know first: what is wrong, in the order of how much it hurts.

import { timeText } from '../../clock';
import { bytes, count } from '../../format';
import type { Status } from './status';

export interface Matter {
  isError: boolean;
  text: string;
}

/** A limit that refused something this long ago is not news. */
const RECENT_MS = 600_000;
const NEARLY_FULL = 0.9;
const CLOCK_MS = 1000;
const CERTIFICATE_MS = 14 * 86_400_000;

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
  add(expiry_ms < server.time_ms + CERTIFICATE_MS, expiry_ms < server.time_ms, `The certificate ${expiry_ms < server.time_ms ? 'expired' : 'expires'} at ${timeText(expiry_ms)}`);
  return found;
}

function ofStorage({ flushes, merges, disk, memory, recovery, samples, backup }: Status): Matter[] {
  const found: Matter[] = [];
  const add = (isTrue: boolean, isError: boolean, text: string) => { if (isTrue) found.push({ isError, text }); };
  add(flushes.last_error !== null, true, `The last flush failed: ${flushes.last_error}`);
  add(merges.failure !== null, true, `The last merge failed: ${merges.failure}`);
  add(samples.settles_failed > 0, true, `${count(samples.settles_failed)} settles of late samples failed since the start`);
  add(samples.rules_failed > 0, true, `${count(samples.rules_failed)} failures of compaction rules since the start: see Rules`);
  add(backup.last_status !== null && backup.last_status !== 'ok', true, `The last backup failed: ${backup.last_status}`);
  const { log_holes: holes, lost_groups: groups, lost_blocks: blocks, damaged_blocks: damaged, quarantined_files: files } = recovery;
  add(holes + groups + blocks + damaged + files > 0, true,
    `Damage was found at the last start: ${holes} holes in the log, ${groups} groups lost, ${blocks} blocks lost, ${damaged} blocks damaged, ${files} files in quarantine`);
  const used = memory.used_bytes / memory.budget_bytes;
  add(memory.budget_bytes > 0 && used > NEARLY_FULL, false, `Memory: ${Math.round(used * 100)}% of the budget`);
  const full = disk.used_bytes / disk.budget_bytes;
  add(disk.budget_bytes > 0 && full > 1, false, `Disk: ${Math.round(full * 100)}% of the budget; the oldest samples are removed`);
  const { free_bytes: free, total_bytes: total } = disk;
  add(free !== null && total !== null && free < total * (1 - NEARLY_FULL), free !== null && total !== null && free < total * 0.02,
    `Disk: ${bytes(free ?? 0)} of ${bytes(total ?? 0)} are free`);
  return found;
}

/** Everything that needs attention, errors first. */
export function matters(status: Status): Matter[] {
  const limits = status.limits.filter((one) => one.last_ms !== null && one.last_ms > status.server.time_ms - RECENT_MS).map((one) => ({
    isError: false, text: `The limit of ${one.of ? `${one.limit} (${one.of})` : one.limit} refused something, last at ${timeText(one.last_ms ?? 0)}`,
  }));
  const found = [...ofState(status), ...ofStorage(status), ...limits];
  return found.sort((a, b) => Number(b.isError) - Number(a.isError));
}
