//! Progress on standard error: a bar on a terminal, periodic lines elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Time between lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Counts samples towards a total that may be unknown.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    label: String,
    began: Instant,
    last_line: Instant,
}

impl Progress {
    /// A bar for `total` samples; `None` if that is unknown.
    pub(crate) fn new(label: impl Into<String>, total: Option<u64>) -> Self {
        let label = label.into();
        let (bar, template) = match total {
            Some(total) => (
                ProgressBar::new(total),
                "{msg} {bar:30} {human_pos}/{human_len} samples, {per_sec}, {eta} left",
            ),
            None => (
                ProgressBar::new_spinner(),
                "{msg} {spinner} {human_pos} samples, {per_sec}",
            ),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(label.clone());
        Self {
            bar,
            label,
            began: Instant::now(),
            last_line: Instant::now(),
        }
    }

    /// Counts `samples` more.
    pub(crate) fn add(&mut self, samples: usize) {
        self.bar.inc(samples as u64);
        if self.bar.is_hidden() && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let done = self.bar.position();
            let rate = done as f64 / self.began.elapsed().as_secs_f64();
            match self.bar.length() {
                Some(total) => eprintln!("{}: {done} of {total} samples, {rate:.0}/s", self.label),
                None => eprintln!("{}: {done} samples, {rate:.0}/s", self.label),
            }
        }
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        if self.bar.is_hidden() {
            eprintln!("{line}");
        } else {
            self.bar.println(line);
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}
