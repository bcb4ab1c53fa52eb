//! `LATEWOOD ADD`, `CREATE`, `ALTER` and `RANGE`: TS.ADD, TS.CREATE, TS.ALTER
//! and TS.RANGE for what other protocols write and RedisTimeSeries knows no
//! word for, so that a series can be moved as it is.
//!
//! A value may be `inf` or `-inf`, and one NaN of many: `nan:7ff0000000000002`
//! gives its bits, here Prometheus' mark of a series that ended. The value of a
//! label may hold `(`, `)` and `,`.

use super::call::{Call, Outcome};
use super::keys::{Access, Run};
use super::rows::Shape;
use super::series_options::LabelValues;
use super::spec::{Keys, Spec};
use super::{add, alter, create, range};
use latewood_wire::resp::Reply;
use latewood_wire::resp::number::{parse_float, parse_value};

/// What stands before the bits of a NaN.
const NAN_MARK: &[u8] = b"nan:";

pub(crate) const ADD: Spec = Spec::of_group("latewood", &["write", "denyoom"])
    .named("add", |call| {
        within(call, |call| add::apply(call, number, LabelValues::Any))
    })
    .words(-5, add::SPEC.syntax)
    .keys(Keys(&[Run::at(2, Access::ByFlags)]))
    .about("Same as TS.ADD; also accepts infinities, every NaN and every label.");

pub(crate) const CREATE: Spec = ADD
    .named("create", |call| {
        within(call, |call| create::apply(call, LabelValues::Any))
    })
    .words(-3, create::SPEC.syntax)
    .about("Same as TS.CREATE; also accepts every label.");

pub(crate) const ALTER: Spec = CREATE
    .named("alter", |call| {
        within(call, |call| alter::apply(call, LabelValues::Any))
    })
    .syntax(alter::SPEC.syntax)
    .about("Same as TS.ALTER; also accepts every label.");

pub(crate) const RANGE: Spec = ADD
    .flags(&["readonly"])
    .named("range", |call| {
        within(call, |call| range::apply(call, false, Shape::Exact))
    })
    .words(-5, range::RANGE.syntax)
    .about("Same as TS.RANGE; also distinguishes NaN values.");

/// Runs the command of the series with the words behind `LATEWOOD`.
fn within(call: &mut Call<'_>, run: fn(&mut Call<'_>) -> Outcome) -> Outcome {
    let mut inner = Call {
        commands: call.commands,
        args: call.args.of_subcommand(),
        out: call.out,
        session: call.session,
        shared: call.shared,
        cancelled: call.cancelled,
        rest: None,
    };
    let outcome = run(&mut inner);
    call.rest = inner.rest;
    outcome
}

fn number(text: &[u8]) -> Option<f64> {
    if let Some(bits) = text.strip_prefix(NAN_MARK) {
        let bits = std::str::from_utf8(bits).ok()?;
        let bits = u64::from_str_radix(bits, 16).ok()?;
        return Some(f64::from_bits(bits)).filter(|value| value.is_nan());
    }
    let infinite = || parse_float(text).filter(|value| value.is_infinite());
    parse_value(text).or_else(infinite)
}

/// Writes a value so that [`number`] reads the same bits.
pub(super) fn put(reply: &mut Reply<'_>, value: f64) {
    if value.is_nan() && value.to_bits() != f64::NAN.to_bits() {
        reply.simple(format!("nan:{:016x}", value.to_bits()))
    } else {
        reply.double(value)
    }
}
