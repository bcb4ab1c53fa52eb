//! Akumuli's native protocol: silence for what is good, one line for what is not.

use super::{Next, Speaker, unspoken};
use crate::intake::{EngineIntake, Report};
use crate::shared::Shared;
use latewood_wire::akumuli::Writer;
use latewood_wire::intake::Reason;
use std::io::Write;

/// The lines of one connection.
#[derive(Default)]
pub(super) struct Akumuli {
    writer: Writer,
}

impl Speaker for Akumuli {
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
        if let Some(error) = &report.failure {
            let _ = write!(
                out,
                "-DB {error}; {} samples are not stored\r\n",
                report.failed
            );
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
