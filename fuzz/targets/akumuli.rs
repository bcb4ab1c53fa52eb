//! Akumuli's lines: no input may panic, and after any input a valid message that
//! follows a series line is found.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::akumuli::Writer;
use latewood_wire::lines::{Lines, Step};
use latewood_wire::testing::Collected;
use libfuzzer_sys::fuzz_target;

const GOOD: &[u8] =
    b"\r\n+goods of=fuzz\r\n:7000000\r\n+1.5\r\n+goods of=fuzz\r\n:8000000\r\n+2.5\r\n";

fuzz_target!(|input: &[u8]| {
    let (mut lines, mut writer) = (Lines::new(256), Writer::new());
    let mut intake = Collected::default();
    let input = [input, GOOD].concat();
    let mut rest = &input[..];
    loop {
        let (step, taken) = lines.step(rest);
        rest = &rest[taken..];
        match step {
            Step::More => break,
            Step::TooLong => writer.too_long(lines.number() as u32, &mut intake),
            Step::Line(line) => writer.line(line, lines.number() as u32, &mut intake),
        }
    }
    // The valid lines may become entries of a dictionary. The first message may be
    // the text of an event.
    if !input.contains(&b'*') {
        let last = intake.lines().pop();
        assert_eq!(last.as_deref(), Some("goods{of=\"fuzz\"}@8=2.5"));
    }
});
