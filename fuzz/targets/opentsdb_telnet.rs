//! OpenTSDB's telnet lines: no input may panic, and time and value of an accepted
//! sample are in OpenTSDB's range.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::lines::{Lines, Step};
use latewood_wire::opentsdb::telnet::{self, Request};
use latewood_wire::opentsdb::{Writer, refuse};
use latewood_wire::testing::Collected;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (mut lines, mut writer) = (Lines::new(256), Writer::new());
    let mut intake = Collected::default();
    let mut rest = input;
    loop {
        let (step, taken) = lines.step(rest);
        rest = &rest[taken..];
        let number = lines.number() as u32;
        match step {
            Step::More => break,
            Step::TooLong => {}
            Step::Line(line) => match telnet::parse(line) {
                Ok(Request::Put(put)) => writer.put(&put, number, &mut intake),
                Ok(Request::Unknown(command)) => telnet::append_unknown(&mut Vec::new(), command),
                Ok(_) => {}
                Err(error) => refuse(&mut intake, number, &error),
            },
        }
    }
    for (key, at, value, _) in &intake.samples {
        assert!(at.ms > 0 && value.is_finite() && key.contains('{'));
    }
});
