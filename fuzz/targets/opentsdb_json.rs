//! Bodies of OpenTSDB's `/api/put`: no input may panic, and every point is
//! either a sample or a refusal.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::opentsdb::{Writer, json};
use latewood_wire::testing::Collected;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let Ok(points) = json::points(body) else {
        return;
    };
    let (mut writer, mut intake) = (Writer::new(), Collected::default());
    for (line, point) in (1..).zip(&points) {
        json::put(&mut writer, point, line, &mut intake);
    }
    assert_eq!(intake.samples.len() + intake.refused.len(), points.len());
});
