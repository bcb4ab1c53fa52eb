//! `MEMORY USAGE key [SAMPLES count]`, `MEMORY STATS`, `MEMORY DOCTOR`,
//! `MEMORY HELP`: where the memory is.
//!
//! Figures are sums over what the engine holds and what the kernel says of
//! the process. The allocator gives freed memory back within a tenth of a second by
//! itself, so PURGE has nothing to do; it keeps no statistics for MALLOC-STATS.

use super::call::{Call, Outcome};
use super::fault::{NOT_AN_INTEGER, SYNTAX};
use super::keys::{Access, Run};
use super::spec::{Keys, Spec};
use crate::observe::process;
use crate::state::Shared;
use latewood_engine::ErrorKind;
use latewood_wire::resp::Reply;
use latewood_wire::resp::number::parse_i64;

const SUB: Spec = Spec::of_group("server", &["loading", "stale"]).help();

const FIGURES: Spec = SUB.flags(&[]);

pub(crate) const SPECS: &[Spec] = &[SUB.flags(&[]).container(
    "memory",
    "Reports memory usage.",
    &[
        FIGURES
            .flags(&["readonly"])
            .named("usage", usage)
            .words(-3, "key [SAMPLES count]")
            .keys(Keys(&[Run::at(2, Access::Look)]))
            .about("Returns the memory of a series in bytes; nothing is estimated."),
        FIGURES
            .named("stats", stats)
            .about("Returns the memory of the database and of the process by part."),
        FIGURES
            .named("doctor", doctor)
            .about("Describes unusual memory usage."),
        FIGURES
            .named("purge", purge)
            .about("Does nothing: the allocator returns freed memory to the system by itself."),
        FIGURES
            .named("malloc-stats", malloc_stats)
            .about("Reports that the allocator keeps no statistics."),
        SUB,
    ],
)];

fn usage(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    match args.len() {
        3 => {}
        // The count says how many elements to estimate from; all are counted.
        5 if args.is(3, "SAMPLES") => match parse_i64(args.word(4)) {
            Some(0..) => {}
            Some(_) => return Err(SYNTAX),
            None => return Err(NOT_AN_INTEGER),
        },
        _ => return Err(SYNTAX),
    }
    match call.shared.db.memory_of(args.word(2)) {
        Ok(bytes) => call.reply().integer(signed(bytes as u64)),
        Err(error) if error.kind() == ErrorKind::NoSuchKey => call.reply().null(),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// A row of MEMORY STATS.
enum Figure {
    Count(u64),
    Signed(i64),
    Ratio(f64),
    Group(Vec<(&'static str, u64)>),
}

fn stats(call: &mut Call<'_>) -> Outcome {
    let db = &call.shared.db;
    let clients = clients_bytes(call.shared);
    let (memory, keys) = (db.memory(), db.len() as u64);
    let resident = process::resident();
    let used = memory.total_bytes() as u64;
    let series = memory.series;
    let dataset = series.total_bytes() as u64;
    let overhead = used - dataset;
    let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let rows = [
        ("peak.allocated", Figure::Count(resident.peak_bytes)),
        ("total.allocated", Figure::Count(used)),
        ("replication.backlog", Figure::Count(0)),
        ("clients.slaves", Figure::Count(0)),
        ("clients.normal", Figure::Count(clients)),
        ("aof.buffer", Figure::Count(memory.log_buffer_bytes as u64)),
        (
            "db.0",
            Figure::Group(vec![(
                "overhead.hashtable.main",
                memory.key_map_bytes as u64,
            )]),
        ),
        ("overhead.total", Figure::Count(overhead)),
        ("keys.count", Figure::Count(keys)),
        ("keys.bytes-per-key", Figure::Count(used / keys.max(1))),
        ("dataset.bytes", Figure::Count(dataset)),
        (
            "dataset.percentage",
            Figure::Ratio(100.0 * ratio(dataset, used)),
        ),
        (
            "peak.percentage",
            Figure::Ratio(100.0 * ratio(resident.now_bytes, resident.peak_bytes)),
        ),
        ("series.tails", Figure::Count(series.tail_bytes as u64)),
        ("series.chunks", Figure::Count(series.chunk_bytes as u64)),
        ("series.late", Figure::Count(series.late_bytes as u64)),
        ("series.other", Figure::Count(series.other_bytes as u64)),
        ("index.labels", Figure::Count(memory.index_bytes as u64)),
        ("metadata", Figure::Count(memory.metadata_bytes as u64)),
        ("process.resident", Figure::Count(resident.now_bytes)),
        (
            "fragmentation",
            Figure::Ratio(ratio(resident.now_bytes, used)),
        ),
        (
            "fragmentation.bytes",
            Figure::Signed(signed(resident.now_bytes) - signed(used)),
        ),
    ];
    let mut reply = call.reply();
    reply.map(rows.len());
    for (name, figure) in rows {
        reply.bulk(name);
        write_figure(&mut reply, figure);
    }
    Ok(())
}

/// Bytes of the buffers of all connections.
pub(super) fn clients_bytes(shared: &Shared) -> u64 {
    let clients = shared.clients.all();
    let bytes = clients.iter().map(|client| client.figures.all_bytes());
    bytes.sum::<usize>() as u64
}

fn write_figure(reply: &mut Reply<'_>, figure: Figure) {
    match figure {
        Figure::Count(count) => reply.integer(signed(count)),
        Figure::Signed(number) => reply.integer(number),
        Figure::Ratio(ratio) => reply.double(ratio),
        Figure::Group(rows) => {
            reply.map(rows.len());
            for (name, count) in rows {
                reply.bulk(name);
                reply.integer(signed(count));
            }
        }
    }
}

fn doctor(call: &mut Call<'_>) -> Outcome {
    let db = &call.shared.db;
    let (memory, resident) = (db.memory(), process::resident());
    let used = memory.total_bytes() as u64;
    let machine = process::machine_memory_bytes();
    let mib = |bytes: u64| bytes / (1024 * 1024);
    let mut text = format!(
        "{} series hold {} MiB; the process has {} MiB in RAM, {} MiB at most so far, of the \
         machine's {} MiB.\n",
        db.len(),
        mib(used),
        mib(resident.now_bytes),
        mib(resident.peak_bytes),
        mib(machine)
    );
    if resident.now_bytes > machine / 10 * 8 {
        text.push_str(
            "That is more than 80 % of the machine's memory: a retention limits the growth of series.\n",
        );
    }
    if memory.series.late_bytes as u64 > used / 4 {
        text.push_str(
            "More than a quarter is late samples that are not settled; LATEWOOD SETTLE settles them now.\n",
        );
    }
    if mib(used) >= 64 && resident.now_bytes > 2 * used {
        text.push_str(
            "The process holds more than twice the memory of the series: freed memory that was not returned, or replies that clients do not read.\n",
        );
    }
    call.reply().verbatim(*b"txt", text);
    Ok(())
}

fn purge(call: &mut Call<'_>) -> Outcome {
    call.ok()
}

fn malloc_stats(call: &mut Call<'_>) -> Outcome {
    call.reply()
        .bulk("Stats not supported for the current allocator");
    Ok(())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
