//! The stages report: where the time of a write goes, and what it costs to look.
//!
//! The engine times one batch in so many, stage by stage, under loads that differ in one thing
//! each. In process the figures come from the engine, over the wire from `INFO stages`. The cost of
//! the timing is measured in pairs of turns with it off and on, each on a database of its own.

use latewood_engine::{self as engine, Stage, StageFigures};
use latewood_model::DuplicatePolicy;

use super::prelude::*;
use crate::drive::cell::{self, Cell, Fixed};
use crate::drive::engine::{Engine, Share};
use crate::drive::many::{Kind, Many};
use crate::drive::many_wire;
use crate::drive::wire::{Wired, cpu_seconds, settle};
use crate::measure::machine::own_cpu_seconds;
use crate::server::{Durability, Latewood};
use crate::workload::series::Series;

/// Labels of a new series.
const LABELS: usize = 6;
/// One batch in so many is timed.
const SAMPLING: u32 = 16;
/// One batch in so many is timed by a server as it comes.
const SERVER_SAMPLING: u32 = 256;
/// Series of the loads that differ in lateness, and samples of each before the load.
const LATE_SERIES: u64 = 32;
const HISTORY: u64 = 20_000;
/// Those samples in the turns, which are short.
const COST_HISTORY: u64 = 5_000;
/// A load that waits for the disk is so many times as short.
const SYNC_SHARE: u64 = 10;

mode! {
    MODE: stages(Sizes), "Measure where the time of a write goes, stage by stage, and what the timing costs";
    one series: u64 = "200000" in 100..=u64::MAX, "New series, which are the known ones afterwards";
    one samples: u64 = "2000000" in 1_000..=u64::MAX, "Samples of each load that differs in lateness";
    one pairs: u64 = "200" in 6..=u64::MAX, "Pairs of turns, one with the timing off and one with it on";
    one turn: u64 = "100000" in 1_000..=u64::MAX, "Samples of such a turn";
}

/// Loads on few series: name, late share, policy for duplicates, rules of each series, and whether
/// every batch waits for the disk.
type FewLoad = (&'static str, f64, DuplicatePolicy, usize, bool);
const LOADS: [FewLoad; 5] = [
    ("InOrder", 0.0, DuplicatePolicy::Last, 0, false),
    ("Late", 1.0, DuplicatePolicy::Last, 0, false),
    ("LateBlock", 1.0, DuplicatePolicy::Block, 0, false),
    ("OneRule", 0.0, DuplicatePolicy::Last, 1, false),
    ("Synced", 0.0, DuplicatePolicy::Last, 0, true),
];
/// The load of the turns: all stages of a write take part.
const COST: FewLoad = ("Cost", 0.1, DuplicatePolicy::Last, 0, false);

/// A load on new series that have a history, `each` samples of every series, one batch in `every`
/// timed.
struct Turn {
    load: FewLoad,
    seed: u64,
    history: u64,
    each: u64,
    every: u32,
}

fn stages(args: &Sizes, report: &mut Report) -> Result<()> {
    let seed = report.common.seed;
    report.share(json!({
        "series": args.series, "labels": LABELS, "sampling": SAMPLING, "costs": [],
    }));
    for repeat in 0..report.common.repeats {
        let mut runs = in_process(args, seed, repeat, SAMPLING)?;
        runs.extend(over_the_wire(args, seed)?);
        report.round("runs", 0, &mut runs, |_, run| {
            run["repeat"] = repeat.into();
            Ok(Some(run.take()))
        })?;
    }
    let loads = [
        ("in process, 10 % late, 32 series", false),
        ("over the wire, 10 % late, 32 series, pipeline 50", true),
    ];
    for (load, wire) in loads {
        let turn = |every| Turn {
            load: COST,
            seed,
            history: COST_HISTORY,
            each: args.turn.div_ceil(LATE_SERIES),
            every,
        };
        let cost = costs(load, args, |every| Ok(turn(every).run(wire)?.0))?;
        report.push("costs", cost)?;
    }
    Ok(())
}

/// The engine without sockets: every sort of writes once.
fn in_process(args: &Sizes, seed: u64, repeat: usize, every: u32) -> Result<Vec<Value>> {
    let many = Many {
        series: args.series,
        known: 4,
        labels: LABELS,
        threads: 1,
    };
    let known = [Kind::KeyAndLabels, Kind::Key, Kind::Reference].map(|kind| (kind, false));
    let mut runs = Vec::new();
    many.watched(&known, repeat, |db, run| {
        db.stages().set_sampling(every);
        let stages = take(&db.stages().figures());
        db.stages().reset();
        runs.extend(run.map(|run| {
            json!({
                "write": run["kind"], "wire": false, "samples": run["samples"],
                "cpu_seconds": run["cpu_seconds"], "stages": stages,
            })
        }));
    })?;
    few(args, seed, every, &mut runs)?;
    Ok(runs)
}

/// A server of its own: every sort of writes it can be sent, once.
fn over_the_wire(args: &Sizes, seed: u64) -> Result<Vec<Value>> {
    let mut runs = Vec::new();
    many_wire::watched(args.series, LABELS, |control, phase| {
        sample(control, SAMPLING)?;
        let stages = take_from(control)?;
        runs.extend(phase.map(|phase| {
            json!({
                "write": phase.kind, "wire": true, "samples": args.series,
                "cpu_seconds": phase.cpu_seconds, "stages": stages,
            })
        }));
        Ok(())
    })?;
    few(args, seed, SAMPLING, &mut runs)?;
    Ok(runs)
}

/// Adds the loads on few series to `runs`, over the wire or not as those before.
fn few(args: &Sizes, seed: u64, every: u32, runs: &mut Vec<Value>) -> Result<()> {
    let wire = runs.first().is_some_and(|run| run["wire"] == true);
    for load in LOADS {
        let (write, .., is_synced) = load;
        let share = if is_synced { SYNC_SHARE } else { 1 };
        let turn = Turn {
            load,
            seed,
            history: HISTORY,
            each: args.samples.div_ceil(share).div_ceil(LATE_SERIES),
            every,
        };
        let (cpu_seconds, stages) = turn.run(wire)?;
        runs.push(json!({
            "write": write, "wire": wire, "samples": turn.each * LATE_SERIES,
            "cpu_seconds": cpu_seconds, "stages": stages,
        }));
    }
    Ok(())
}

impl Turn {
    fn run(&self, wire: bool) -> Result<(f64, Vec<Value>)> {
        if wire {
            self.over_the_wire()
        } else {
            self.in_process()
        }
    }

    /// Writes to a database of its own: processor time until all is settled and logged, and what
    /// was timed.
    fn in_process(&self) -> Result<(f64, Vec<Value>)> {
        let (_, late, policy, rules, is_synced) = self.load;
        let engine = Engine::under(policy, engine::Options::default())?;
        let series = |number| Series::new(format!("ooo-client#{number}"), late, self.seed, number);
        let mut share = Share::new((0..LATE_SERIES).map(series).collect());
        engine.create(&share, rules)?;
        let mut write = |samples: u64, next: fn(&mut Series) -> (i64, f32), sync| -> Result<f64> {
            share.make(samples as usize, next);
            let (_, before) = share.write(&engine.db, sync)?;
            engine.db.settle()?;
            engine.db.maintain()?;
            Ok(own_cpu_seconds() - before)
        };
        write(self.history * LATE_SERIES, Series::next_in_order, false)?;
        engine.db.stages().set_sampling(self.every);
        engine.db.stages().reset();
        let cpu_seconds = write(self.each * LATE_SERIES, Series::next_sample, is_synced)?;
        let stages = take(&engine.db.stages().figures());
        engine.held(&share)?;
        engine.close()?;
        Ok((cpu_seconds, stages))
    }

    /// The same by a server of its own; history lies in blocks.
    fn over_the_wire(&self) -> Result<(f64, Vec<Value>)> {
        let (_, late, policy, rules, is_synced) = self.load;
        let durabilities = [Durability::Interval, Durability::Sync];
        let mut server = Wired::start(&Latewood::with(durabilities[usize::from(is_synced)]))?;
        let cell = Cell {
            late_percent: late * 100.0,
            connections: 8,
            policy: policy.name().to_uppercase(),
            rules,
            ..Cell::in_order(LATE_SERIES, 0, 50)
        };
        let fixed = Fixed {
            preload: self.history,
            ..Fixed::new(self.seed, 0)
        };
        let mut connections = cell.open(server.process.address(), &fixed)?;
        let control = &mut server.control;
        sample(control, self.every)?;
        take_from(control)?;
        let before = cpu_seconds(control)?;
        cell::run_load(&mut connections, self.each, |_| ())?;
        settle(control)?;
        control.wait_for_log()?;
        let cpu_seconds = cpu_seconds(control)? - before;
        let stages = take_from(control)?;
        cell::check(control, &connections.into_sources())?;
        Ok((cpu_seconds, stages))
    }
}

/// Takes pairs of turns with the timing off and on; `turn` runs one, timing one batch in so many,
/// and returns its processor seconds. Which comes first changes from pair to pair.
fn costs(load: &str, args: &Sizes, mut turn: impl FnMut(u32) -> Result<f64>) -> Result<Value> {
    let (mut on, mut off) = (Vec::new(), Vec::new());
    // The first turn finds nothing warm.
    turn(0)?;
    for pair in 0..args.pairs {
        for is_on in [pair % 2 == 0, pair % 2 == 1] {
            if is_on {
                on.push(turn(SERVER_SAMPLING)?)
            } else {
                off.push(turn(0)?)
            }
        }
    }
    Ok(json!({
        "load": load, "sampling": SERVER_SAMPLING, "off_cpu_seconds": off, "on_cpu_seconds": on,
        "samples": args.turn.next_multiple_of(LATE_SERIES),
    }))
}

/// Has one batch in `every` timed by a server.
fn sample(control: &mut Control, every: u32) -> Result<()> {
    let command = format!("CONFIG SET stage-sampling {every}");
    control.run(&command).map(drop)
}

/// The stages that occurred.
fn take(figures: &[StageFigures]) -> Vec<Value> {
    let occurred = figures.iter().filter(|figures| figures.events > 0);
    let line = |of: &StageFigures| {
        json!({
            "name": of.stage.name(), "background": of.stage.is_background(), "timed": of.timed,
            "events": of.events, "total_ns": of.total_ns, "mean_ns": of.mean_ns,
            "p50_ns": of.p50_ns, "p99_ns": of.p99_ns,
        })
    };
    occurred.map(line).collect()
}

/// Takes what a server has timed, and has it begin anew.
fn take_from(control: &mut Control) -> Result<Vec<Value>> {
    let info = control.info("stages")?;
    let mut lines = Vec::new();
    for stage in Stage::ALL {
        let field = format!("stage_{}", stage.name());
        let text = info.text(&field).unwrap_or_default();
        let line = read(stage, text)
            .ok_or_else(|| Error::new(format!("{field} of INFO stages is {text:?}")))?;
        lines.extend(Some(line).filter(|line| line["events"] != 0));
    }
    control.run("CONFIG RESETSTAT")?;
    Ok(lines)
}

/// Reads `count=..,timed=..,...`.
fn read(stage: Stage, text: &str) -> Option<Value> {
    let mut line = json!({"name": stage.name(), "background": stage.is_background()});
    for field in text.split(',') {
        let (name, value) = field.split_once('=')?;
        let name = if name == "count" { "events" } else { name };
        line[name] = serde_json::from_str(value).ok()?;
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGS: Sizes = Sizes {
        series: 500,
        samples: 20_000,
        pairs: 40,
        turn: 1_000,
    };

    #[test]
    fn each_sort_of_writes_shows_the_stages_it_is_for() {
        let runs = in_process(&ARGS, 12_345, 0, 1).unwrap();
        assert_eq!(runs.len(), 9);
        for run in &runs {
            let write = run["write"].as_str().unwrap();
            let stages = run["stages"].as_array().unwrap();
            let has = |stage: &str| stages.iter().any(|line| line["name"] == stage);
            assert_eq!(has("table_insert"), write == "New");
            let is_late = ["Late", "LateBlock"].contains(&write);
            assert_eq!(has("late_staging"), is_late);
            assert_eq!(has("series_id"), write != "Reference");
            assert_eq!(has("sample_append"), !is_late);
            assert_eq!(has("rule_update"), write == "OneRule");
            assert_eq!(has("sync_wait"), write == "Synced");
            // Late samples meet others, by chance, under either policy.
            assert_eq!(has("duplicate_check"), is_late);
            assert!(has("log_write"));
            assert!(has("index_batch") || write != "New");
            assert!(has("settle") || write != "Late");
        }
    }

    #[test]
    fn turns_alternate_and_pairs_are_kept() {
        let mut order = Vec::new();
        let cost = costs("load", &ARGS, |every| {
            order.push(every);
            Ok(1.0)
        });
        assert_eq!(order[..5], [0, 256, 0, 0, 256]);
        let cost = cost.unwrap();
        let lens =
            ["on_cpu_seconds", "off_cpu_seconds"].map(|side| cost[side].as_array().unwrap().len());
        assert_eq!(lens, [40, 40]);
    }

    #[test]
    fn reads_a_line_of_info() {
        let text = "count=1048576,timed=4096,total_ns=29360128,mean_ns=28.0,p50_ns=27,p99_ns=61,\
                    share=9.41";
        let line = read(Stage::SampleAppend, text).unwrap();
        let expected = json!({
            "name": "sample_append", "background": false, "events": 1_048_576, "timed": 4_096,
            "total_ns": 29_360_128, "mean_ns": 28.0, "p50_ns": 27, "p99_ns": 61, "share": 9.41,
        });
        assert_eq!(line, expected);
        assert!(read(Stage::Settle, "count=1,timed=x").is_none());
        assert!(read(Stage::Settle, "").is_none());
    }
}
