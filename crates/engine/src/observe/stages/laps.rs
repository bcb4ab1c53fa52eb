//! Who takes the time of a batch, or does not.

use crate::observe::stages::Stage;
use crate::observe::stages::registry::Stages;
use crate::observe::stages::ticker::Ticker;

/// Hears where stages of a batch end.
pub(crate) trait Laps {
    /// A stage ended that `events` of the batch went through: what passed
    /// since the last end is theirs. With 0 events it is added to what was
    /// said of the stage before.
    fn end_for(&mut self, stage: Stage, events: usize);

    /// The same for one.
    #[inline]
    fn end(&mut self, stage: Stage) {
        self.end_for(stage, 1);
    }

    /// Has the deeper steps of a sample's way timed in `inner`, until
    /// [`Laps::leave`].
    fn enter(&mut self, inner: &mut Inner);

    /// The end of that.
    fn leave(&mut self, inner: &mut Inner);

    /// A stage ended within which deeper steps may have been timed.
    fn end_around(&mut self, stage: Stage, inner: &mut Inner);
}

/// Of a batch that is not timed: does nothing, at no cost.
pub(crate) struct Untimed;

impl Laps for Untimed {
    #[inline(always)]
    fn end_for(&mut self, _: Stage, _: usize) {}

    #[inline(always)]
    fn enter(&mut self, _: &mut Inner) {}

    #[inline(always)]
    fn leave(&mut self, _: &mut Inner) {}

    #[inline(always)]
    fn end_around(&mut self, _: Stage, _: &mut Inner) {}
}

/// Of a batch that is timed.
#[derive(Debug)]
pub struct Timed {
    stages: Stages,
    ticker: &'static Ticker,
    /// How many batches this one stands for.
    weight: u64,
    last: u64,
}

impl Timed {
    pub(crate) fn begin(stages: Stages, ticker: &'static Ticker, weight: u64) -> Self {
        let last = ticker.now();
        Self {
            stages,
            ticker,
            weight,
            last,
        }
    }

    /// A stage ended that `events` of the batch went through: what passed
    /// since the last end is theirs, in equal parts. With 0 events it is added
    /// to the time of the stage alone.
    pub fn end_for(&mut self, stage: Stage, events: usize) {
        let ticks = self.ticker.since(self.last);
        self.add(stage, events, ticks);
        // What the counting took belongs to no stage.
        self.last = self.ticker.now();
    }

    /// What passed since the last end belongs to no stage.
    pub fn skip(&mut self) {
        self.last = self.ticker.now();
    }

    fn add(&self, stage: Stage, events: usize, ticks: u64) {
        let fractions = self.ticker.fractions(ticks);
        self.stages
            .add(stage, events as u64, fractions, self.weight);
    }
}

impl Laps for Timed {
    #[inline]
    fn end_for(&mut self, stage: Stage, events: usize) {
        Self::end_for(self, stage, events);
    }

    fn enter(&mut self, inner: &mut Inner) {
        *inner = Inner {
            ticker: Some(self.ticker),
            ..Inner::default()
        };
    }

    fn leave(&mut self, inner: &mut Inner) {
        *inner = Inner::default();
    }

    fn end_around(&mut self, stage: Stage, inner: &mut Inner) {
        let mut ticks = self.ticker.since(self.last);
        for (step, spent) in [
            (Stage::FrameSeal, &mut inner.seal),
            (Stage::DuplicateCheck, &mut inner.check),
        ] {
            if let Some(spent) = spent.take() {
                ticks = ticks.saturating_sub(spent);
                self.add(step, 1, spent);
            }
        }
        self.add(stage, 1, ticks);
        self.last = self.ticker.now();
    }
}

/// Steps deep on the way of a sample, timed for the batch that goes it.
#[derive(Debug, Default)]
pub(crate) struct Inner {
    /// There while a timed batch is under way.
    ticker: Option<&'static Ticker>,
    seal: Option<u64>,
    check: Option<u64>,
}

impl Inner {
    /// When such a step begins, if it is timed.
    #[inline]
    pub(crate) fn begin(&self) -> Option<u64> {
        self.ticker.map(Ticker::now)
    }

    /// A tail that began to be encoded then is encoded.
    #[inline]
    pub(crate) fn end_seal(&mut self, begun: Option<u64>) {
        add(self.ticker, begun, &mut self.seal);
    }

    /// A look for a duplicate that began then is over.
    #[inline]
    pub(crate) fn end_check(&mut self, begun: Option<u64>) {
        add(self.ticker, begun, &mut self.check);
    }
}

#[inline]
fn add(ticker: Option<&Ticker>, begun: Option<u64>, spent: &mut Option<u64>) {
    if let (Some(ticker), Some(begun)) = (ticker, begun) {
        *spent = Some(spent.unwrap_or(0) + ticker.since(begun));
    }
}
