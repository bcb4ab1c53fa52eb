//! `sort`, `sort_desc`, `sort_by_label`, `sort_by_label_desc`: the order of an instant vector.
//!
//! The result of a range is ordered by labels whatever they say, which a warning tells. Equal
//! values keep their order; NaN goes last both ways. Tested by the differential test.

use super::natural;
use crate::exec::tally::Tally;
use crate::exec::{Context, Node, Result, Series};
use crate::span::Span;
use std::cmp::Ordering;
use std::collections::HashMap;

/// What decides.
pub(crate) enum By {
    Value,
    /// The values of these labels, then all labels.
    Labels(Vec<String>),
}

/// An input in another order; `place` is that of the call.
pub(crate) fn sorted(
    by: &By,
    descends: bool,
    input: Node,
    steps: usize,
    place: Span,
    ctx: &Context<'_>,
) -> Result<Node> {
    if steps > 1 {
        let text =
            "sort is ineffective for range queries since results are always ordered by labels";
        ctx.annotate(|annotations| annotations.warn(text, place));
        return Ok(input);
    }
    ctx.hold(input.series().len() * size_of::<usize>())?;
    let order = match by {
        By::Value => by_value(&input, descends, ctx)?,
        By::Labels(names) => by_labels(input.series(), names, descends, ctx)?,
    };
    let series = ctx.collect(order.iter().map(|at| input.series()[*at].clone()))?;
    Ok(Node::new(series, move |at, work, out| {
        input.column(order[at], work, out)
    }))
}

/// Series by their values; those without a value are left out.
fn by_value(input: &Node, descends: bool, ctx: &Context<'_>) -> Result<Vec<usize>> {
    let mut values = Vec::new();
    input.each(input.all(), 1, ctx, |at, column| match column.get(0) {
        Some(value) => ctx.push(&mut values, (value, at)),
        None => Ok(()),
    })?;
    values.sort_by(|(a, _), (b, _)| match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        _ if descends => b.partial_cmp(a).unwrap_or(Ordering::Equal),
        _ => a.partial_cmp(b).unwrap_or(Ordering::Equal),
    });
    Ok(values.into_iter().map(|(_, at)| at).collect())
}

/// Series by the values of labels; a comparison takes no longer than there are labels in a
/// series, however many are named.
fn by_labels(
    series: &[Series],
    names: &[String],
    descends: bool,
    ctx: &Context<'_>,
) -> Result<Vec<usize>> {
    let mut tally = Tally::new(ctx);
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, name) in names.iter().enumerate() {
        places.entry(name).or_insert(place);
    }
    let mut keys = Vec::with_capacity(series.len());
    for one in series {
        let labels = one.labels.iter();
        let named = labels.filter_map(|(name, value)| Some((*places.get(name)?, value)));
        let mut key: Vec<(usize, &str)> = named.collect();
        tally.add(size_of::<Vec<(usize, &str)>>() + key.capacity() * size_of::<(usize, &str)>())?;
        key.sort_unstable_by_key(|(place, _)| *place);
        keys.push(key);
    }
    tally.settle()?;
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by(|a, b| {
        let order = first_difference(&keys[*a], &keys[*b])
            .then_with(|| series[*a].labels.cmp(&series[*b].labels));
        if descends { order.reverse() } else { order }
    });
    Ok(order)
}

/// The order of the first label whose values differ; one that a series lacks is empty.
fn first_difference(a: &[(usize, &str)], b: &[(usize, &str)]) -> Ordering {
    let mut pairs = a.iter().zip(b);
    // Labels before it are the same.
    let differs = pairs.position(|(a, b)| a != b);
    let at = differs.unwrap_or(a.len().min(b.len()));
    match (a.get(at), b.get(at)) {
        (Some((left, a)), Some((right, b))) => match left.cmp(right) {
            Ordering::Equal => natural::compare(a, b),
            Ordering::Less => natural::compare(a, ""),
            Ordering::Greater => natural::compare("", b),
        },
        (Some((_, a)), None) => natural::compare(a, ""),
        (None, Some((_, b))) => natural::compare("", b),
        (None, None) => Ordering::Equal,
    }
}
