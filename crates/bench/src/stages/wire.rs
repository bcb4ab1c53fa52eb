//! A server of its own: every sort of writes it can be sent, and what the timing costs there.

use super::process::{COST_LATE_SHARE, SERVER_SAMPLING};
use super::{
    COST_HISTORY, FewLoad, HISTORY, LATE_SERIES, SamplingCost, StagesArgs, StagesRun, Write,
    figures,
};
use crate::control::Control;
use crate::error::Result;
use crate::late::{self, Cell, Encoding, Fixed};
use crate::load::Load;
use crate::new::{self, Kind};
use crate::target::{Latewood, Process};
use crate::workload::{LateShape, Writer};

/// Connections, and commands sent on each before the replies are awaited.
const CONNECTIONS: usize = 8;
const PIPELINE: usize = 50;

/// A server with few series, and the connections that write to them.
struct Few {
    control: Control,
    load: Load<Writer>,
    _process: Process,
}

/// Every sort of writes once.
///
/// # Errors
/// When the server fails or loses a sample.
pub(super) fn run(args: &StagesArgs, repeat: usize) -> Result<Vec<StagesRun>> {
    let mut runs = Vec::new();
    new::watched_wire(args.series, args.labels as usize, |control, phase| {
        sample(control, args.sampling)?;
        let stages = figures::take_from(control)?;
        let write = |kind| match kind {
            Kind::KeyAndLabels => Write::KnownLabels,
            Kind::Key | Kind::Reference => Write::Known,
            Kind::New | Kind::Mixed => Write::New,
        };
        runs.extend(phase.map(|(kind, rate)| StagesRun {
            write: write(kind),
            wire: true,
            repeat,
            samples: args.series,
            cpu_seconds: args.series as f64 / rate.per_cpu_second,
            stages,
        }));
        Ok(())
    })?;
    for load in FewLoad::ALL {
        let mut few = Few::open(load, args.rounds.seed, HISTORY)?;
        sample(&mut few.control, args.sampling)?;
        figures::take_from(&mut few.control)?;
        let samples = load.samples(args.samples).div_ceil(LATE_SERIES);
        let cpu_seconds = few.send(samples)?;
        let stages = figures::take_from(&mut few.control)?;
        few.close()?;
        runs.push(StagesRun {
            write: load.write,
            wire: true,
            repeat,
            samples: samples * LATE_SERIES,
            cpu_seconds,
            stages,
        });
    }
    Ok(runs)
}

/// The load with the timing off and on, each turn on a server of its own.
///
/// # Errors
/// When the server fails or loses a sample.
pub(super) fn cost(args: &StagesArgs) -> Result<SamplingCost> {
    let samples = args.turn.div_ceil(LATE_SERIES);
    SamplingCost::measure(
        "over the wire, 10 % late, 32 series, pipeline 50",
        SERVER_SAMPLING,
        samples * LATE_SERIES,
        args.pairs,
        |every| {
            let load = FewLoad {
                late_share: COST_LATE_SHARE,
                ..FewLoad::of(Write::Late)
            };
            let mut few = Few::open(load, args.rounds.seed, COST_HISTORY)?;
            sample(&mut few.control, every)?;
            let cpu_seconds = few.send(samples)?;
            few.close()?;
            Ok(cpu_seconds)
        },
    )
}

/// Has one batch in `every` timed.
fn sample(control: &mut Control, every: u32) -> Result<()> {
    let every = every.to_string();
    let words: [&[u8]; 4] = [b"CONFIG", b"SET", b"stage-sampling", every.as_bytes()];
    control.run(&words).map(drop)
}

impl Few {
    /// With `history` samples in order in each series, in blocks.
    fn open(load: FewLoad, seed: u64, history: u64) -> Result<Self> {
        let (process, _) = Latewood::with(load.durability).start()?;
        let cell = Cell {
            late_percent: load.late_share * 100.0,
            encoding: Encoding::Compressed,
            chunk_size: 4096,
            pipeline: PIPELINE,
            connections: CONNECTIONS,
            policy: load.policy.name().to_uppercase(),
            series: LATE_SERIES,
            samples: 0,
            rules: load.rules,
            shape: LateShape::Uniform,
        };
        let fixed = Fixed::new(seed, 0).preloaded(history);
        let load = late::open(process.address(), &cell, &fixed)?;
        Ok(Few {
            control: Control::connect(process.address())?,
            load,
            _process: process,
        })
    }

    /// Sends `samples` of every series and returns the server's processor time until they are
    /// settled and logged.
    fn send(&mut self, samples: u64) -> Result<f64> {
        let before = late::cpu_seconds(&mut self.control)?;
        late::run_load(&mut self.load, samples, |_| ())?;
        late::settle(&mut self.control)?;
        self.control.wait_for_log()?;
        Ok(late::cpu_seconds(&mut self.control)? - before)
    }

    /// Counts what is held.
    fn close(mut self) -> Result<()> {
        let writers = self.load.into_sources();
        late::check(&mut self.control, &writers).map(drop)
    }
}
