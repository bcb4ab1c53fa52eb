//! InfluxDB line protocol on a connection: nothing is ever answered.

use super::speaker::{LINE_BYTES_MAX, Next, Speaker, refuse_rest};
use crate::intake::{EngineIntake, Report};
use crate::state::Shared;
use latewood_wire::influx::{Decoder, Precision};

/// The lines of one connection.
pub(super) struct Influx {
    decoder: Decoder,
}

impl Influx {
    pub(super) fn new(precision: Precision) -> Self {
        let decoder = Decoder::new(precision).with_line_bytes_max(LINE_BYTES_MAX);
        Self { decoder }
    }
}

impl Speaker for Influx {
    fn read(
        &mut self,
        arrived: &[u8],
        intake: &mut EngineIntake,
        _: &Shared,
        _: &mut Vec<u8>,
    ) -> (usize, Next) {
        (self.decoder.decode(arrived, false, intake), Next::Line)
    }

    /// What stands before the last line waited for a quote.
    fn end(&mut self, rest: &[u8], intake: &mut EngineIntake) {
        let whole = memchr::memrchr(b'\n', rest).map_or(0, |at| at + 1);
        self.decoder.decode(&rest[..whole], true, intake);
        let number = self.decoder.lines().saturating_add(1);
        refuse_rest(&rest[whole..], number, intake);
    }

    fn answer(&mut self, _: &Report, _: &mut Vec<u8>) {}
}
