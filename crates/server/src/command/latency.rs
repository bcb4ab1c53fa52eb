//! `LATENCY LATEST|HISTORY|RESET|GRAPH|DOCTOR|HISTOGRAM|HELP`: delays that
//! were noticed, and how long commands take.
//!
//! The events are those of [`Event`]; they are kept from
//! `latency-monitor-threshold` milliseconds on. HISTOGRAM needs no threshold:
//! it counts every command.

mod graph;
mod histogram;

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::Spec;
use crate::observe::{Event, History};
use std::fmt::Write;
use std::sync::atomic::Ordering;

const SUB: Spec = Spec::of_group("server", &["loading", "stale"]).help();

const ADMIN: Spec = SUB.flags(&["admin", "noscript", "loading", "stale"]);

pub(crate) const SPECS: &[Spec] = &[SUB.flags(&[]).container(
    "latency",
    "Reports delays and the duration of commands.",
    SUBCOMMANDS,
)];

const SUBCOMMANDS: &[Spec] = &[
    ADMIN
        .named("latest", latest)
        .about("Returns the latest and the longest delay of each event."),
    ADMIN
        .named("history", history)
        .words(3, "event")
        .about("Returns the delays of an event, at most 160."),
    ADMIN
        .named("reset", reset)
        .words(-2, "[event ...]")
        .about("Clears the delays of these events, or of all."),
    ADMIN
        .named("graph", graph)
        .words(3, "event")
        .about("Returns a graph of the delays of an event."),
    ADMIN
        .named("doctor", doctor)
        .about("Describes the delays and what to check."),
    ADMIN
        .named("histogram", histogram::apply)
        .words(-2, "[command ...]")
        .about("Returns histograms of the duration of commands."),
    SUB,
];

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn seen(call: &Call<'_>) -> Vec<(Event, History)> {
    let latency = &call.shared.observe.latency;
    Event::all()
        .map(|event| (event, latency.history(event)))
        .filter(|(_, history)| !history.delays.is_empty())
        .collect()
}

fn latest(call: &mut Call<'_>) -> Outcome {
    let seen = seen(call);
    let mut reply = call.reply();
    reply.array(seen.len());
    for (event, history) in seen {
        let Some(last) = history.delays.back() else {
            continue;
        };
        reply.array(4);
        reply.bulk(event.name());
        reply.integer(last.time_s);
        reply.integer(signed(last.duration_ms));
        reply.integer(signed(history.longest_ms));
    }
    Ok(())
}

fn history(call: &mut Call<'_>) -> Outcome {
    let latency = &call.shared.observe.latency;
    let event = Event::parse(call.args.word(2));
    let history = event.map_or_else(History::default, |event| latency.history(event));
    let mut reply = call.reply();
    reply.array(history.delays.len());
    for delay in history.delays {
        reply.array(2);
        reply.integer(delay.time_s);
        reply.integer(signed(delay.duration_ms));
    }
    Ok(())
}

fn reset(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let latency = &call.shared.observe.latency;
    let forgotten = if args.len() == 2 {
        Event::all().filter(|event| latency.reset(*event)).count()
    } else {
        let named = args.from(2).filter_map(Event::parse);
        named.filter(|event| latency.reset(*event)).count()
    };
    call.integer(signed(forgotten as u64))
}

fn graph(call: &mut Call<'_>) -> Outcome {
    let name = call.args.word(2);
    let latency = &call.shared.observe.latency;
    let found = Event::parse(name).map(|event| (event, latency.history(event)));
    match found.filter(|(_, history)| !history.delays.is_empty()) {
        Some((event, history)) => {
            let text = graph::draw(event.name(), &history, crate::base::clock::now_ms() / 1000);
            call.reply().verbatim(*b"txt", text);
            Ok(())
        }
        None => {
            let name = String::from_utf8_lossy(name);
            let line = format!("ERR No samples available for event '{name}'");
            Fault::refuse(line)
        }
    }
}

fn doctor(call: &mut Call<'_>) -> Outcome {
    let threshold_ms = call
        .shared
        .observe
        .latency
        .threshold_ms
        .load(Ordering::Relaxed);
    let mut text = String::new();
    let seen = seen(call);
    if threshold_ms == 0 {
        text.push_str(
            "Delays are not recorded. CONFIG SET latency-monitor-threshold <milliseconds> records those of at least that length.\n",
        );
    } else if seen.is_empty() {
        let _ = writeln!(text, "No delay of {threshold_ms} ms or more.");
    }
    for (event, history) in seen {
        let (count, longest_ms) = (history.delays.len(), history.longest_ms);
        let sum_ms: u64 = history.delays.iter().map(|delay| delay.duration_ms).sum();
        let mean_ms = sum_ms / count.max(1) as u64;
        let name = event.name();
        let _ = writeln!(
            text,
            "{name}: {count} seconds with a delay, {mean_ms} ms on average, {longest_ms} ms at most. {}",
            advice(event)
        );
    }
    call.reply().verbatim(*b"txt", text);
    Ok(())
}

/// What to look at when an event takes long.
fn advice(event: Event) -> &'static str {
    match event {
        Event::Command | Event::FastCommand => {
            "SLOWLOG GET lists the commands; long ranges and KEYS are the usual causes."
        }
        Event::Engine(work) => match work {
            latewood_engine::Work::LogSync => {
                "The disk is slow to sync: writes under durability sync wait for it, others do not."
            }
            latewood_engine::Work::Settle => {
                "Late samples are settled in the background; this takes a core but does not delay writers."
            }
            latewood_engine::Work::Rules => {
                "Compaction rules are recomputed in the background and by readers: many late samples in many buckets of one source take long."
            }
            latewood_engine::Work::Flush => {
                "Flushes take long: the disk is slow, or much was written since the last flush."
            }
            latewood_engine::Work::EndCycle => {
                "Series that retention left nothing of are removed in the background, a slice of time at once."
            }
            latewood_engine::Work::ExpireCycle => {
                "Many series expired at once; they are removed in the background."
            }
        },
    }
}
