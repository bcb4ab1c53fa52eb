//! `LATENCY HISTOGRAM [command ...]`: for each command that ran, its calls and
//! how many of them took at most a number of microseconds, by powers of two. The
//! name of a container stands for all its subcommands; unknown names and
//! commands that never ran are left out.

use super::signed;
use crate::command::call::{Call, Outcome};
use crate::observe::CommandRow;

pub(super) fn apply(call: &mut Call<'_>) -> Outcome {
    let (args, shared) = (call.args, call.shared);
    let is_wanted = |row: &&CommandRow| {
        let container = row.name.split('|').next().unwrap_or_default();
        args.len() == 2
            || args.from(2).any(|word| {
                word.eq_ignore_ascii_case(row.name.as_bytes())
                    || word.eq_ignore_ascii_case(container.as_bytes())
            })
    };
    let rows = shared.observe.commands.rows().iter().filter(is_wanted);
    let counted: Vec<_> = rows
        .map(|row| (row, row.durations.counts()))
        .filter(|(_, counts)| counts.total() > 0)
        .collect();
    let mut reply = call.reply();
    reply.map(counted.len());
    for (row, counts) in counted {
        let steps = counts.cumulative_us();
        reply.bulk(&row.name);
        reply.map(2);
        reply.key("calls").integer(signed(counts.total()));
        reply.key("histogram_usec").map(steps.len());
        for (at_most_us, calls) in steps {
            reply.integer(signed(at_most_us));
            reply.integer(signed(calls));
        }
    }
    Ok(())
}
