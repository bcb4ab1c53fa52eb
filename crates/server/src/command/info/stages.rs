//! The section `stages` of INFO: how long each stage of a write takes.

use super::source::{Source, field};
use latewood_engine::StageFigures;

pub(super) fn stages(text: &mut String, source: &Source<'_>) {
    let stages = source.shared.db.stages();
    field(text, "stage_sampling", stages.sampling());
    for figures in stages.figures() {
        let StageFigures {
            stage,
            timed,
            events,
            total_ns,
            mean_ns,
            p50_ns,
            p99_ns,
            share,
        } = figures;
        field(
            text,
            &format!("stage_{}", stage.name()),
            format_args!(
                "count={events},timed={timed},total_ns={total_ns},mean_ns={mean_ns:.1},\
                 p50_ns={p50_ns},p99_ns={p99_ns},share={:.2}",
                share * 100.0
            ),
        );
    }
}
