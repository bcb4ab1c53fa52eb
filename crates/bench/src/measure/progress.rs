//! How far a long run is: a bar on a terminal, a line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::base::error::Result;
use crate::base::threads::beside;

const LINE_EVERY: Duration = Duration::from_secs(1);

/// A count on its way to a total.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    last_line: Instant,
}

impl Progress {
    /// A bar from 0 to `total` samples, on standard error.
    pub(crate) fn new(label: impl Into<String>, total: u64) -> Self {
        let bar = ProgressBar::new(total).with_message(label.into());
        let template = "{msg} {bar:30} {human_pos}/{human_len} samples, {per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress {
            bar,
            last_line: Instant::now(),
        }
    }

    /// Shows that `done` samples are through.
    pub(crate) fn show(&mut self, done: u64) {
        self.bar.set_position(done);
        if self.bar.is_hidden() && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let (label, total) = (self.bar.message(), self.bar.length().unwrap_or(0));
            let rate = done as f64 / self.bar.elapsed().as_secs_f64();
            let percent = 100.0 * done as f64 / total.max(1) as f64;
            eprintln!("{label}: {percent:.0} % of {total} samples, {rate:.0}/s");
        }
    }

    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// Does `work`, and says every second how long it has taken.
pub(crate) fn during<T: Send>(label: &str, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let (began, mut last_line) = (Instant::now(), Instant::now());
    let look = || {
        if last_line.elapsed() >= LINE_EVERY {
            last_line = Instant::now();
            eprintln!("{label}: {:.0} s", began.elapsed().as_secs_f64());
        }
    };
    beside(LINE_EVERY, look, work)
}
