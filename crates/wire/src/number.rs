//! Numbers of protocols that spell infinity.

/// Parses a number as Rust does: digits with a point and an exponent, `inf` or
/// `NaN`, each with an optional sign; `None` if digits overflow: `1e999` does not
/// mean infinity.
///
/// ```
/// use latewood_wire::number::parse_f64;
/// assert_eq!(parse_f64("-1.5e3"), Some(-1500.0));
/// assert_eq!(parse_f64("+Inf"), Some(f64::INFINITY));
/// assert_eq!(parse_f64("1e999"), None);
/// ```
pub fn parse_f64(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let is_too_large = value.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit());
    (!is_too_large).then_some(value)
}
