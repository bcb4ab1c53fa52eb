//! Columns computed by all threads, handed out in order.

use crate::column::Column;
use crate::exec::{Context, Node, Result};
use rayon::prelude::*;
use std::time::{Duration, Instant};

/// Bytes of the columns that are computed at a time.
const CHUNK_BYTES: usize = 4 << 20;
/// Steps that are worth a task of their own, and most columns of a task.
const TASK_STEPS: usize = 4096;
const TASK_COLUMNS_MAX: usize = 64;
/// Most columns that are computed at a time.
const CHUNK_COLUMNS: usize = 1024;

/// Time that a thread computes a few columns alone before others join.
const ALONE_MAX: Duration = Duration::from_micros(200);
/// What a column costs beside its steps, in steps: finding its samples.
const COLUMN_STEPS: usize = 32;

/// Whether one thread computes these columns faster than several do, judged by columns and steps alone.
pub(crate) fn is_small(columns: usize, steps: usize) -> bool {
    columns.saturating_mul(steps + COLUMN_STEPS) <= TASK_STEPS
}

/// How many columns of `steps` steps are computed at a time, at most.
pub(crate) fn chunk_len(steps: usize) -> usize {
    let least = rayon::current_num_threads() * 2;
    (CHUNK_BYTES / Column::len_bytes(steps).max(1)).clamp(least, CHUNK_COLUMNS.max(least))
}

/// Computes the columns of `wanted` in the current pool of threads and gives them to `take` chunk by
/// chunk in their order, so that what it computes does not depend on the threads.
pub(crate) fn for_columns(
    input: &Node,
    wanted: &[usize],
    steps: usize,
    ctx: &Context<'_>,
    mut take: impl FnMut(&[usize], &mut [Column]) -> Result<()>,
) -> Result<()> {
    let column_bytes = Column::len_bytes(steps).max(1);
    let chunk = chunk_len(steps).min(wanted.len());
    let task = (TASK_STEPS / steps.max(1)).clamp(1, TASK_COLUMNS_MAX);
    ctx.hold(chunk * column_bytes)?;
    let mut columns = vec![Column::default(); chunk];
    let mut chunks = wanted.chunks(chunk.max(1));
    let result = chunks.try_for_each(|wanted| {
        let columns = &mut columns[..wanted.len()];
        let compute = |columns: &mut [Column], wanted: &[usize]| {
            ctx.work(|work| {
                let mut each = columns.iter_mut().zip(wanted);
                each.try_for_each(|(column, at)| input.column(*at, work, column))
            })
        };
        ctx.apart(|| {
            let mut done = 0;
            if is_small(wanted.len(), steps) {
                // A column may read much: then the other threads join.
                let begun = Instant::now();
                while done < wanted.len() && begun.elapsed() < ALONE_MAX {
                    compute(&mut columns[done..=done], &wanted[done..=done])?;
                    done += 1;
                }
            }
            let (columns, wanted) = (&mut columns[done..], &wanted[done..]);
            let tasks = columns.par_chunks_mut(task).zip(wanted.par_chunks(task));
            tasks.try_for_each(|(columns, wanted)| compute(columns, wanted))
        })?;
        ctx.source.check()?;
        take(wanted, columns)
    });
    ctx.release(chunk * column_bytes);
    result
}
