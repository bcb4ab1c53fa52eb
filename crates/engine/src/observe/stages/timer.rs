//! The time of a batch, given to its stages.

use crate::observe::stages::Stage;
use crate::observe::stages::registry::Stages;
use crate::observe::stages::ticker::Ticker;

/// Takes the time of a batch, stage by stage; off unless the batch is one of those that
/// are timed ([`Stages::due`]). Off, each call costs a branch.
#[derive(Debug, Default)]
pub struct Timer(Option<Box<Running>>);

/// Of a batch that is timed.
#[derive(Debug)]
struct Running {
    stages: Stages,
    ticker: &'static Ticker,
    /// How many batches this one stands for.
    weight: u64,
    /// When the last stage ended.
    last: u64,
    /// Ticks since then of steps that were counted apart.
    inside: u64,
}

impl Timer {
    pub(super) fn begin(stages: Stages, ticker: &'static Ticker, weight: u64) -> Self {
        let mut running = Box::new(Running {
            stages,
            ticker,
            weight,
            last: 0,
            inside: 0,
        });
        running.last = ticker.now();
        Self(Some(running))
    }

    /// Whether it takes the time.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// A stage ended that `events` of the batch went through: what passed since the last
    /// end is theirs, in equal parts. With 0 events it is added to the time of the stage
    /// alone.
    #[inline]
    pub fn end_for(&mut self, stage: Stage, events: usize) {
        if let Some(running) = &mut self.0 {
            running.end_for(stage, events);
        }
    }

    /// The same for one event.
    #[inline]
    pub(crate) fn end(&mut self, stage: Stage) {
        self.end_for(stage, 1);
    }

    /// What passed since the last end belongs to no stage.
    pub fn skip(&mut self) {
        if let Some(running) = &mut self.0 {
            running.rest();
        }
    }

    /// The beginning of a step within a stage, if it is timed.
    #[inline]
    pub(crate) fn begin_step(&self) -> Option<u64> {
        self.0.as_ref().map(|running| running.ticker.now())
    }

    /// Such a step ended: its time is that of `stage`, and not of the one it is in.
    #[inline]
    pub(crate) fn end_step(&mut self, stage: Stage, begun: Option<u64>) {
        if let (Some(running), Some(begun)) = (&mut self.0, begun) {
            running.end_step(stage, begun);
        }
    }
}

impl Running {
    #[cold]
    fn end_for(&mut self, stage: Stage, events: usize) {
        let ticks = self.ticker.since(self.last).saturating_sub(self.inside);
        self.add(stage, events, ticks);
        // What the counting took belongs to no stage.
        self.rest();
    }

    #[cold]
    fn end_step(&mut self, stage: Stage, begun: u64) {
        self.add(stage, 1, self.ticker.since(begun));
        self.inside += self.ticker.now().saturating_sub(begun);
    }

    fn add(&self, stage: Stage, events: usize, ticks: u64) {
        let fractions = self.ticker.fractions(ticks);
        self.stages
            .add(stage, events as u64, fractions, self.weight);
    }

    fn rest(&mut self) {
        self.inside = 0;
        self.last = self.ticker.now();
    }
}
