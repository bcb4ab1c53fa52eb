//! The figures of a load: what was timed of every stage, in process or over the wire.

use latewood_engine::{Db, Stage};
use serde::{Deserialize, Serialize};

use super::Write;
use crate::control::Control;
use crate::error::{Error, Result};

/// One load, measured once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StagesRun {
    /// What was written.
    pub(crate) write: Write,
    /// Over the wire; else in process.
    pub(crate) wire: bool,
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// Samples written.
    pub(crate) samples: u64,
    /// Of all threads of the engine or the server, until nothing was left to do.
    pub(crate) cpu_seconds: f64,
    /// Every stage that occurred.
    pub(crate) stages: Vec<StageLine>,
}

/// What was timed of one stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StageLine {
    /// Its name.
    pub(crate) name: String,
    /// Whether it is behind the writers.
    pub(crate) background: bool,
    /// Events that were timed.
    pub(crate) timed: u64,
    /// Events there were.
    pub(crate) events: u64,
    /// Their time together.
    pub(crate) total_ns: u64,
    /// Of a timed one.
    pub(crate) mean_ns: f64,
    /// Half of the timed ones took no longer.
    pub(crate) p50_ns: u64,
    /// All but one of a hundred.
    pub(crate) p99_ns: u64,
}

impl StagesRun {
    /// Processor time of a sample, nanoseconds.
    pub(crate) fn cpu_ns(&self) -> f64 {
        self.cpu_seconds * 1e9 / self.samples as f64
    }

    /// Time of a stage for each sample, nanoseconds; 0 where it did not occur.
    pub(crate) fn stage_ns(&self, name: &str) -> f64 {
        let stages = self.stages.iter().filter(|stage| stage.name == name);
        stages.map(|stage| stage.total_ns).sum::<u64>() as f64 / self.samples as f64
    }

    /// One line for the terminal.
    pub(super) fn sentence(&self) -> String {
        let mut longest: Vec<&StageLine> = self.stages.iter().collect();
        longest.sort_by_key(|stage| std::cmp::Reverse(stage.total_ns));
        let of = |stage: &&StageLine| format!("{} {:.0}", stage.name, self.stage_ns(&stage.name));
        let longest: Vec<String> = longest.iter().take(4).map(of).collect();
        format!(
            "{}, {}: {:.0} ns of CPU; longest stages, ns a sample: {}",
            if self.wire {
                "over the wire"
            } else {
                "in process"
            },
            self.write.name(),
            self.cpu_ns(),
            longest.join(", "),
        )
    }
}

/// Takes what the engine has timed, and begins anew.
pub(crate) fn take(db: &Db) -> Vec<StageLine> {
    let figures = db.stages().figures();
    db.stages().reset();
    let occurred = figures.iter().filter(|figures| figures.events > 0);
    let line = |figures: &latewood_engine::StageFigures| StageLine {
        name: figures.stage.name().to_owned(),
        background: figures.stage.is_background(),
        timed: figures.timed,
        events: figures.events,
        total_ns: figures.total_ns,
        mean_ns: figures.mean_ns,
        p50_ns: figures.p50_ns,
        p99_ns: figures.p99_ns,
    };
    occurred.map(line).collect()
}

/// Takes what a server has timed, and has it begin anew.
///
/// # Errors
/// When it goes away or does not tell.
pub(super) fn take_from(control: &mut Control) -> Result<Vec<StageLine>> {
    let info = control.info("stages")?;
    let mut lines = Vec::new();
    for stage in Stage::ALL {
        let field = format!("stage_{}", stage.name());
        let text = info.text(&field);
        let text = text.ok_or_else(|| Error::new(format!("INFO stages has no {field}")))?;
        let line = read(stage, text)
            .ok_or_else(|| Error::new(format!("{field} of INFO stages is {text:?}")))?;
        lines.extend(Some(line).filter(|line| line.events > 0));
    }
    control.run(&[b"CONFIG", b"RESETSTAT"])?;
    Ok(lines)
}

/// Reads `count=..,timed=..,...`.
fn read(stage: Stage, text: &str) -> Option<StageLine> {
    let of = |name: &str| {
        let mut fields = text.split(',').filter_map(|field| field.split_once('='));
        fields.find_map(|(key, value)| (key == name).then_some(value))
    };
    let count = |name| of(name)?.parse::<u64>().ok();
    Some(StageLine {
        name: stage.name().to_owned(),
        background: stage.is_background(),
        timed: count("timed")?,
        events: count("count")?,
        total_ns: count("total_ns")?,
        mean_ns: of("mean_ns")?.parse().ok()?,
        p50_ns: count("p50_ns")?,
        p99_ns: count("p99_ns")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_of_info() {
        let text = "count=1048576,timed=4096,total_ns=29360128,mean_ns=28.0,p50_ns=27,p99_ns=61,\
                    share=9.41";
        let line = read(Stage::SampleAppend, text).unwrap();
        assert_eq!(
            (line.name.as_str(), line.background),
            ("sample_append", false)
        );
        assert_eq!((line.events, line.timed), (1_048_576, 4_096));
        assert_eq!((line.total_ns, line.mean_ns), (29_360_128, 28.0));
        assert_eq!((line.p50_ns, line.p99_ns), (27, 61));
        assert!(read(Stage::Settle, "count=1,timed=x").is_none());
        assert!(read(Stage::Settle, "").is_none());
    }

    #[test]
    fn time_of_a_stage_is_spread_over_the_samples() {
        let line = |name: &str, total_ns| StageLine {
            name: name.to_owned(),
            background: false,
            timed: 1,
            events: 1,
            total_ns,
            mean_ns: 1.0,
            p50_ns: 1,
            p99_ns: 1,
        };
        let run = StagesRun {
            write: Write::Late,
            wire: false,
            repeat: 0,
            samples: 10,
            cpu_seconds: 1e-6,
            stages: vec![line("settle", 500), line("parse", 20)],
        };
        assert_eq!(run.stage_ns("settle"), 50.0);
        assert_eq!(run.stage_ns("reply"), 0.0);
        assert!(run.sentence().contains("settle 50, parse 2"));
    }
}
