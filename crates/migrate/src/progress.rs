//! Progress on standard error: a bar on a terminal, periodic lines elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Time between lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Counts samples, or bytes, towards a total that may be unknown.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    label: String,
    unit: &'static str,
    began: Instant,
    last_line: Instant,
}

impl Progress {
    /// A bar for `total` samples; `None` if that is unknown.
    pub(crate) fn new(label: impl Into<String>, total: Option<u64>) -> Self {
        let known = "{msg} {bar:30} {human_pos}/{human_len} samples, {per_sec}, {eta} left";
        let unknown = "{msg} {spinner} {human_pos} samples, {per_sec}";
        Self::of("samples", label.into(), total, [known, unknown])
    }

    /// Of bytes, towards a total that may be unknown.
    pub(crate) fn of_bytes(label: impl Into<String>, total: Option<u64>) -> Self {
        let known = "{msg} {bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
        let unknown = "{msg} {spinner} {bytes}, {bytes_per_sec}";
        Self::of("bytes", label.into(), total, [known, unknown])
    }

    /// With a template for a known total, and one for an unknown one.
    fn of(unit: &'static str, label: String, total: Option<u64>, templates: [&str; 2]) -> Self {
        let [known, unknown] = templates;
        let (bar, template) = match total {
            Some(total) => (ProgressBar::new(total), known),
            None => (ProgressBar::new_spinner(), unknown),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(label.clone());
        Self {
            bar,
            label,
            unit,
            began: Instant::now(),
            last_line: Instant::now(),
        }
    }

    /// Counts `count` more.
    pub(crate) fn add(&mut self, count: usize) {
        self.bar.inc(count as u64);
        if self.bar.is_hidden() && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let done = self.bar.position();
            let rate = done as f64 / self.began.elapsed().as_secs_f64();
            let (label, unit) = (&self.label, self.unit);
            match self.bar.length() {
                Some(total) => eprintln!("{label}: {done} of {total} {unit}, {rate:.0}/s"),
                None => eprintln!("{label}: {done} {unit}, {rate:.0}/s"),
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
