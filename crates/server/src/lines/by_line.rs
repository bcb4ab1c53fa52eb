//! Protocols whose every line stands for itself.

use super::speaker::{LINE_BYTES_MAX, Next, Speaker, refuse_rest};
use crate::intake::{EngineIntake, Report};
use crate::state::Shared;
use latewood_wire::lines::{Lines, Step};

/// What one protocol does with the lines of a connection.
pub(super) trait LineSpeaker: Send {
    /// Takes a line without its ending; whether the connection goes on. What
    /// has an answer of its own first finishes `intake` and answers for the
    /// lines before, so that `out` is in the order of the lines.
    fn line(
        &mut self,
        line: &[u8],
        number: u32,
        intake: &mut EngineIntake,
        shared: &Shared,
        out: &mut Vec<u8>,
    ) -> Next;

    /// Takes notice of a line of more than [`LINE_BYTES_MAX`] bytes.
    fn too_long(&mut self, number: u32, intake: &mut EngineIntake);

    /// Answers what became of the lines since the last time.
    fn answer(&mut self, report: &Report, out: &mut Vec<u8>);
}

/// Cuts what arrives into lines.
pub(super) struct ByLine<S> {
    lines: Lines,
    speaker: S,
}

impl<S: LineSpeaker> ByLine<S> {
    pub(super) fn new(speaker: S) -> Self {
        let lines = Lines::new(LINE_BYTES_MAX);
        Self { lines, speaker }
    }
}

impl<S: LineSpeaker> Speaker for ByLine<S> {
    fn read(
        &mut self,
        arrived: &[u8],
        intake: &mut EngineIntake,
        shared: &Shared,
        out: &mut Vec<u8>,
    ) -> (usize, Next) {
        let (mut taken, mut next) = (0, Next::Line);
        while next == Next::Line {
            let (step, bytes) = self.lines.step(&arrived[taken..]);
            taken += bytes;
            let number = u32::try_from(self.lines.number()).unwrap_or(u32::MAX);
            match step {
                Step::More => break,
                Step::Line(line) => next = self.speaker.line(line, number, intake, shared, out),
                Step::TooLong => self.speaker.too_long(number, intake),
            }
        }
        (taken, next)
    }

    fn end(&mut self, rest: &[u8], intake: &mut EngineIntake) {
        let number = self.lines.number().saturating_add(1);
        refuse_rest(rest, u32::try_from(number).unwrap_or(u32::MAX), intake);
    }

    fn answer(&mut self, report: &Report, out: &mut Vec<u8>) {
        self.speaker.answer(report, out);
    }
}
