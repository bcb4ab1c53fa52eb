//! Akumuli's native protocol: silence for what is good, one line for what is not.

use super::by_line::LineSpeaker;
use super::speaker::{Next, unspoken};
use crate::intake::{EngineIntake, Report, Share};
use crate::state::Shared;
use latewood_wire::akumuli::{DICTIONARY_BYTES_MAX, Writer};
use latewood_wire::intake::Reason;
use std::io::Write;
use std::sync::Arc;

/// The lines of one connection.
pub(super) struct Akumuli {
    writer: Writer,
    /// For its dictionary.
    share: Share,
}

impl Akumuli {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            writer: Writer::new(),
            share: Share::new(Arc::clone(shared)),
        }
    }
}

impl LineSpeaker for Akumuli {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        number: u32,
        intake: &mut EngineIntake,
        _: &Shared,
        _: &mut Vec<u8>,
    ) -> Next {
        self.writer.line(line, number, intake);
        Next::Line
    }

    fn too_long(&mut self, number: u32, intake: &mut EngineIntake) {
        self.writer.too_long(number, intake);
    }

    fn answer(&mut self, report: &Report, out: &mut Vec<u8>) {
        self.share.hold(self.writer.dictionary_bytes());
        let allowed = self.share.allowed_bytes(DICTIONARY_BYTES_MAX);
        self.writer.limit_dictionary(allowed);
        for line in &report.lines {
            // Writing to a Vec cannot fail, here and below.
            let _ = write!(
                out,
                "-{} {} (line {})\r\n",
                kind(line.reason),
                line.text,
                line.number
            );
        }
        match unspoken(report) {
            0 => {}
            more => drop(write!(out, "-PARSER {more} more were refused\r\n")),
        }
        if let Some(failure) = report.told_failure() {
            let _ = write!(out, "-DB {failure}\r\n");
        }
    }
}

/// The words Akumuli's errors begin with.
fn kind(reason: Reason) -> &'static str {
    match reason {
        Reason::Syntax | Reason::Name | Reason::Value | Reason::Timestamp | Reason::Long => {
            "PARSER"
        }
        _ => "DB",
    }
}
