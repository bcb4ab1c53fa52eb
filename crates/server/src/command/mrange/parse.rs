//! The words of TS.MRANGE, checked in the order of RedisTimeSeries: span and
//! range options, the presence of FILTER, labels, the place of GROUPBY, the
//! filter, the group.

use crate::command::args::Args;
use crate::command::call::Call;
use crate::command::fault::Fault;
use crate::command::label_options::{self, Shown};
use crate::command::{filter, range_options};
use latewood_engine::RangeQuery;
use latewood_model::{Aggregator, Matcher};

/// What one TS.MRANGE asks.
pub(super) struct Request {
    pub(super) query: RangeQuery,
    pub(super) shown: Shown,
    pub(super) exclude_empty: bool,
    pub(super) matchers: Vec<Matcher>,
    pub(super) group_by: Option<GroupBy>,
}

/// `GROUPBY label REDUCE reducer`.
pub(super) struct GroupBy {
    pub(super) label: Box<[u8]>,
    pub(super) reducer: Aggregator,
}

/// Reads all words.
pub(super) fn request(call: &Call<'_>, reverse: bool) -> Result<Request, Fault> {
    let args = call.args;
    let group_at = args.find("GROUPBY", 3);
    let query = range_options::parse(call, 1, reverse)?;
    let filter_at = args
        .find("FILTER", 3)
        .ok_or(Fault::line("ERR TSDB: missing FILTER argument"))?;
    let shown = label_options::parse(args, 3)?;
    if group_at.is_some_and(|at| at < filter_at) {
        return Fault::refuse("ERR TSDB: GROUPBY should always come after filter");
    }
    let filters = args.first(group_at.unwrap_or(args.len()));
    if filter_at + 1 == filters.len() {
        return Fault::refuse("ERR TSDB: missing labels for filter argument");
    }
    let matchers = filter::matchers(filters.from(filter_at + 1))?;
    let exclude_empty = args.first(filter_at).find("EXCLUDEEMPTY", 3).is_some();
    if exclude_empty && group_at.is_some() {
        return Fault::refuse("ERR TSDB: EXCLUDEEMPTY is not allowed with GROUPBY");
    }
    let group_by = group_at.map(|at| group_by(args, at)).transpose()?;
    let aggregation = query.aggregation.as_ref().filter(|_| group_by.is_some());
    if aggregation.is_some_and(|aggregation| aggregation.aggregators.len() > 1) {
        return Fault::refuse(
            "ERR TSDB: GROUPBY is not allowed when multiple aggregators are specified",
        );
    }
    Ok(Request {
        query,
        shown,
        exclude_empty,
        matchers,
        group_by,
    })
}

/// Three words, the first of which is the label; REDUCE is looked for among
/// all words of the command, as RedisTimeSeries does.
fn group_by(args: Args<'_>, at: usize) -> Result<GroupBy, Fault> {
    let reduce = args.find("REDUCE", 3);
    let reduce = reduce
        .filter(|_| args.len() == at + 4)
        .ok_or(Fault::Arity)?;
    let reducer = args.get(reduce + 1).and_then(Aggregator::of_name);
    let reducer = reducer.filter(|reducer| reducer.reduces());
    Ok(GroupBy {
        label: args.word(at + 1).into(),
        reducer: reducer.ok_or(Fault::line("ERR TSDB: Invalid reducer type"))?,
    })
}
