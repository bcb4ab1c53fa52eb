// The figures of the server, by subject.

import type { ComponentChildren } from 'preact';
import { durationText, secondText } from '../../clock';
import { bytes, count, took, UNKNOWN } from '../../format';
import { FigureList, type Figure } from '../../components/figures';
import { Table, type Column } from '../../components/table';
import { colour, isDark } from '../../theme';
import type { Status } from './status';

function Facts({ title, facts, children }: { title: string; facts: Figure[]; children?: ComponentChildren }) {
  return (
    <section class="card subject">
      <h2>{title}</h2>
      {children}
      <FigureList kind="facts" all={facts} />
    </section>
  );
}

const limited = (used: number, budget: number) =>
  budget > 0 ? `${bytes(used)} of ${bytes(budget)} (${Math.round((used / budget) * 100)}%)` : `${bytes(used)}, no budget`;
const us = (value: number) => took(value / 1000);
/** Seconds are enough for a long duration. */
const long = (ms: number) => (Number.isNaN(ms) ? UNKNOWN : durationText(Math.floor(ms / 1000) * 1000));

/** Parts as a bar, whose whole is the budget. */
function Memory({ status: { memory } }: { status: Status }) {
  const parts = Object.entries(memory.parts_bytes).filter(([, size]) => size > 0).sort(([, a], [, b]) => b - a);
  const known = parts.reduce((sum, [, size]) => sum + size, 0);
  const used = memory.used_bytes || 0;
  const whole = Math.max(memory.budget_bytes || 0, used, known, 1);
  const rest = Math.max(0, used - known);
  const all: [string, number][] = [...parts, ['other', rest]];
  return (
    <Facts title="Memory" facts={[
      ['used', limited(memory.used_bytes, memory.budget_bytes)],
      ['peak', bytes(memory.peak_bytes)],
      ['in no block yet', bytes(memory.unflushed_bytes)],
      ['resident, machine', `${bytes(memory.resident_bytes)}, ${bytes(memory.machine_bytes)}`],
      ['writes that waited', `${count(memory.stalls)}, ${took(memory.stalled_ms)}`, memory.stalls > 0],
      ['writes refused', count(memory.refused), memory.refused > 0],
    ]}>
      <div class="parts" role="img" aria-label={`${bytes(memory.used_bytes)} of ${bytes(whole)} are used`}>
        {all.map(([name, size], at) => <span key={name} title={`${name}: ${bytes(size)}`} style={{ width: `${(size / whole) * 100}%`, background: colour(at, isDark.value) }} />)}
      </div>
      <ul class="keys">
        {all.map(([name, size], at) => (
          <li key={name}><span class="dot" style={{ background: colour(at, isDark.value) }} /><span>{name.replace(/_/g, ' ')}</span><b>{bytes(size)}</b></li>
        ))}
      </ul>
    </Facts>
  );
}

function Disk({ status: { disk, flushes, merges, log, remote } }: { status: Status }) {
  return (
    <>
      <Facts title="Disk" facts={[
        ['used by Latewood', limited(disk.used_bytes, disk.budget_bytes)],
        ['free', disk.free_bytes === null || disk.total_bytes === null ? 'unknown' : `${bytes(disk.free_bytes)} of ${bytes(disk.total_bytes)}`],
        ['writes that waited', `${count(disk.stalls)}, ${took(disk.stalled_ms)}`, disk.stalls > 0],
        ['writes refused', count(disk.refused), disk.refused > 0],
      ]} />
      <Facts title="Log" facts={log === null ? [['state', 'off: a kill loses what is in no block', true]] : [
        ['durability', log.durability === 'interval' ? `interval, ${count(log.sync_interval_ms)} ms` : log.durability],
        ['size', `${bytes(log.bytes)}, ${count(log.segments)} ${log.segments === 1 ? 'segment' : 'segments'} needed`],
        ['written', bytes(log.bytes_written)],
        [remote === null ? 'oldest not on disk' : 'oldest not in Kafka', log.oldest_unsynced_ms === null ? 'none' : took(log.oldest_unsynced_ms)],
        ['syncs', count(log.syncs)],
        ['last, median, 99%', `${us(log.last_sync_us)}, ${us(log.sync_p50_us)}, ${us(log.sync_p99_us)}`],
      ]} />
      {remote !== null && <Facts title="Log in Kafka" facts={[
        ['epoch', count(remote.epoch)],
        ['waits for Kafka', bytes(remote.queued_bytes)],
        ['in no checkpoint', bytes(remote.log_bytes)],
        ['checkpoints, failed', `${count(remote.checkpoints)}, ${count(remote.checkpoints_failed)}`, remote.checkpoint_last_error !== null],
        ['newest', remote.checkpoint_time_ms === null ? 'none' : `${secondText(remote.checkpoint_time_ms)}, ${bytes(remote.checkpoint_bytes ?? NaN)}`],
        ['last took', took(remote.checkpoint_last_ms)],
      ]} />}
      <Facts title="Flushes" facts={[
        ['state', flushes.in_progress ? 'running' : 'idle'],
        ['flushes, failed', `${count(flushes.flushes)}, ${count(flushes.failed)}`, flushes.last_error !== null],
        ['samples', count(flushes.samples)],
        ['written', bytes(flushes.bytes_written)],
        ['last took', took(flushes.last_ms)],
      ]} />
      <Facts title="Merges" facts={[
        ['state', merges.paused > 0 ? 'paused' : merges.busy > 0 ? 'running' : 'idle'],
        ['merges, failed', `${count(merges.base_merges + merges.late_merges)}, ${count(merges.failures)}`, merges.failure !== null],
        ['blocks', `${count(merges.base_blocks)}, ${bytes(merges.base_bytes)}`],
        ['blocks of late samples', `${count(merges.late_blocks)}, ${bytes(merges.late_bytes)}`],
        ['written', bytes(merges.bytes_written)],
        ['write amplification', Number.isNaN(merges.write_amplification) ? UNKNOWN : merges.write_amplification.toFixed(2)],
      ]} />
    </>
  );
}

function Samples({ status: { samples } }: { status: Status }) {
  return (
    <Facts title="Samples since the start" facts={[
      ['series', count(samples.series)],
      ['created, expired, ended', `${count(samples.series_created)}, ${count(samples.series_expired)}, ${count(samples.series_ended)}`],
      ['in order', count(samples.in_order)],
      ['late, waiting to be merged', `${count(samples.late)}, ${count(samples.late_pending)}`],
      ['duplicate, ignored', `${count(samples.duplicate)}, ${count(samples.ignored)}`],
      ['refused', count(samples.refused_total), samples.refused_total > 0],
    ]} />
  );
}

function Connections({ status: { connections, requests, promql, long_reads } }: { status: Status }) {
  return (
    <>
      <Facts title="Connections: open, accepted, rejected" facts={[
        ...connections.listeners.map((one): Figure => [one.listener, `${count(one.open)}, ${count(one.accepted)}, ${count(one.rejected)}`, one.rejected > 0]),
        ['maximum', count(connections.maximum)],
        ['blocked', count(connections.blocked)],
      ]} />
      <Facts title="Requests at a time" facts={[
        ...requests.map((one): Figure => [one.side, `${count(one.places_used)} of ${count(one.places)}, ${bytes(one.memory_used_bytes)}`, one.places_used >= one.places]),
        ['PromQL', `${count(promql.running)}, ${bytes(promql.memory_used_bytes)}`],
        ['long reads', `${count(long_reads.running)} run, ${count(long_reads.waiting)} wait`],
      ]} />
    </>
  );
}

function Limits({ status: { limits } }: { status: Status }) {
  const met = limits.filter((one) => one.refused > 0);
  return (
    <Facts title="Limits met since the start" facts={met.map((one): Figure => [
      one.of ? `${one.limit} (${one.of})` : one.limit, `${count(one.refused)}, last ${one.last_ms === null ? '-' : secondText(one.last_ms)}`, true,
    ])}>
      {met.length === 0 && <p class="hint">None: no limit has refused anything.</p>}
    </Facts>
  );
}

/** What was refused, by protocol and reason, and errors of the Redis protocol by code. */
function Refused({ status: { intake, errors, samples } }: { status: Status }) {
  const by = (of: string, counts: Record<string, number>): Figure[] =>
    Object.entries(counts).filter(([, times]) => times > 0).map(([reason, times]) => [`${of}: ${reason.replace(/_/g, ' ')}`, count(times), true]);
  const facts = [...intake.flatMap((one) => by(one.protocol, one.refused)), ...by('redis', errors.by_code)];
  return (
    <Facts title="Refused since the start" facts={[
      ['samples, all protocols', count(samples.refused_total), samples.refused_total > 0],
      ...facts,
      ['denied: logins, commands, keys', `${count(errors.denied_logins)}, ${count(errors.denied_commands)}, ${count(errors.denied_keys)}`, errors.denied_logins > 0],
    ]} />
  );
}

function Recovery({ status: { recovery, backup } }: { status: Status }) {
  const damage: Figure[] = [
    ['holes in the log', count(recovery.log_holes), recovery.log_holes > 0],
    ['lost: groups, blocks', `${count(recovery.lost_groups)}, ${count(recovery.lost_blocks)}`, recovery.lost_groups + recovery.lost_blocks > 0],
    ['damaged blocks', count(recovery.damaged_blocks), recovery.damaged_blocks > 0],
    ['files in quarantine', count(recovery.quarantined_files), recovery.quarantined_files > 0],
  ];
  const last = backup.last_status;
  return (
    <>
      <Facts title="Recovery at the last start" facts={[
        ['stop before', recovery.clean ? 'clean' : 'not clean, or none'],
        ['took', took(recovery.duration_ms)],
        ['replayed', `${count(recovery.samples)} samples, ${count(recovery.series)} series`],
        ...damage,
      ]} />
      <Facts title="Backup" facts={[
        ['state', backup.in_progress ? 'running' : 'idle'],
        ['last', last === null ? 'none since the start' : last, last !== null && last !== 'ok'],
        ...(backup.last_duration_ms === null ? [] : [['took', took(backup.last_duration_ms)] as Figure]),
      ]} />
    </>
  );
}

function Process({ status: { server, clock, tls } }: { status: Status }) {
  const expiry_s = tls.certificate_expiry_s;
  return (
    <Facts title="Process" facts={[
      ['version', server.version],
      ['up for', long(server.uptime_ms)],
      ['process, threads', `${server.process_id || UNKNOWN}, ${count(server.threads)}`],
      ['directory', server.directory],
      ['samples kept from', clock.kept_from_ms > 0 ? secondText(clock.kept_from_ms) : 'the first'],
      ['certificate', expiry_s === null ? 'none' : `until ${secondText(expiry_s * 1000)}`],
    ]} />
  );
}

type Setting = NonNullable<Status['settings']>[number];

const SETTINGS: Column<Setting>[] = [
  { name: 'name', title: 'Option', cell: (row) => row.name, by: (row) => row.name },
  { name: 'value', title: 'Value', cell: (row) => <span title={row.value}>{row.value}</span> },
  { name: 'default', title: 'Default', cell: (row) => <span title={row.default}>{row.default}</span> },
];

function Settings({ status: { settings } }: { status: Status }) {
  return (
    <section class="card subject">
      <h2>Settings that are not the default</h2>
      {settings === null && <p class="hint">This user may not see them: they need permission for CONFIG GET.</p>}
      {settings?.length === 0 && <p class="hint">None: every option has its default.</p>}
      {settings !== null && settings.length > 0 && <Table label="Settings" columns={SETTINGS} rows={settings} id={(row) => row.name} />}
    </section>
  );
}

export function Cards({ status }: { status: Status }) {
  return (
    <>
      <div class="subjects">
        <Memory status={status} />
        <Disk status={status} />
        <Samples status={status} />
        <Connections status={status} />
        <Limits status={status} />
        <Refused status={status} />
        <Recovery status={status} />
        <Process status={status} />
      </div>
      <Settings status={status} />
    </>
  );
}
