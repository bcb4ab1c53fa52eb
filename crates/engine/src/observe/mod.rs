//! What is measured and told: stages of a write, background work, notices to the
//! operator, why writes have stopped.

pub(crate) mod halt;
pub mod histogram;
pub(crate) mod notices;
pub(crate) mod observer;
pub(crate) mod signals;
pub(crate) mod stages;

use crate::base::options::Options;
use crate::io::Clock;
use halt::Halt;
use notices::Notices;
use observer::Observer;
use signals::Signals;
use stages::Stages;
use std::sync::Arc;

/// What the parts of a database tell of their work.
pub(crate) struct Observe {
    pub(crate) notices: Notices,
    pub(crate) halt: Halt,
    pub(crate) observer: Observer,
    pub(crate) signals: Arc<Signals>,
    pub(crate) stages: Stages,
}

impl Observe {
    pub(crate) fn new(options: &Options, clock: &Arc<dyn Clock>) -> Self {
        let stages = Stages::default();
        let notices = Notices::new(options.on_notice.as_ref(), clock);
        Self {
            halt: Halt::new(&notices),
            notices,
            observer: Observer::new(stages.clone()),
            signals: Arc::default(),
            stages,
        }
    }
}
