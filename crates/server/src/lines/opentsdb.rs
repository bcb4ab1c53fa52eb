//! OpenTSDB's telnet protocol: `put`, and what people type.

use super::by_line::LineSpeaker;
use super::speaker::{LINE_BYTES_MAX, Next, unspoken};
use crate::base::clock::now_ms;
use crate::intake::{EngineIntake, Report};
use crate::observe::Protocol;
use crate::state::Shared;
use latewood_wire::intake::{Intake, Reason};
use latewood_wire::opentsdb::telnet::{self, Request};
use latewood_wire::opentsdb::{Writer, refuse};
use std::io::Write;
use std::sync::atomic::Ordering;

/// The lines of one connection.
#[derive(Default)]
pub(super) struct Telnet {
    writer: Writer,
}

impl LineSpeaker for Telnet {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        number: u32,
        intake: &mut EngineIntake,
        shared: &Shared,
        out: &mut Vec<u8>,
    ) -> Next {
        match telnet::parse(line) {
            Ok(Request::Put(put)) => self.writer.put(&put, number, intake),
            Err(error) => refuse(intake, number, &error),
            Ok(Request::Blank) => {}
            Ok(Request::Exit) => return Next::Close,
            Ok(request) => {
                // A sender takes the answer to `version` for word of all before it.
                self.answer(&intake.finish(), out);
                append_answer(request, shared, out);
            }
        }
        Next::Line
    }

    fn too_long(&mut self, number: u32, intake: &mut EngineIntake) {
        let text = format_args!("the line is longer than {LINE_BYTES_MAX} bytes");
        intake.refuse(number, Reason::Long, text);
    }

    fn answer(&mut self, report: &Report, out: &mut Vec<u8>) {
        for line in &report.lines {
            telnet::append_refusal(out, line.reason, &line.text);
        }
        // Writing to a Vec cannot fail, here and below.
        match unspoken(report) {
            0 => {}
            more => drop(writeln!(
                out,
                "put: illegal argument: {more} more were refused"
            )),
        }
        if let Some(failure) = report.told_failure() {
            let _ = writeln!(out, "put: Please throttle writes: {failure}");
        }
    }
}

/// The answer to a line that is there for its answer.
fn append_answer(request: Request<'_>, shared: &Shared, out: &mut Vec<u8>) {
    match request {
        Request::Version => {
            let version = env!("CARGO_PKG_VERSION");
            out.extend_from_slice(format!("latewood {version}\n").as_bytes());
        }
        Request::Stats => append_stats(shared, out),
        Request::Help => {
            out.extend_from_slice(b"available commands: exit help put stats version\n");
        }
        Request::Unknown(command) => telnet::append_unknown(out, command),
        Request::Put(_) | Request::Blank | Request::Exit => {}
    }
}

/// `METRIC TIMESTAMP VALUE TAG=VALUE` for each counter, as OpenTSDB names them.
fn append_stats(shared: &Shared, out: &mut Vec<u8>) {
    let counters = shared.protocols.intake.of(Protocol::OpenTsdb);
    let now_s = now_ms() / 1000;
    let samples = counters.samples.load(Ordering::Relaxed);
    let _ = writeln!(out, "tsd.rpc.received {now_s} {samples} type=put");
    for reason in Reason::ALL {
        let refused = counters.refused[reason as usize].load(Ordering::Relaxed);
        let _ = writeln!(
            out,
            "tsd.rpc.errors {now_s} {refused} type={}",
            reason.name()
        );
    }
    let failed = counters.failed.load(Ordering::Relaxed);
    let _ = writeln!(out, "tsd.rpc.errors {now_s} {failed} type=storage");
}
