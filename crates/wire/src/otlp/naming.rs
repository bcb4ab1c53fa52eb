//! Names of metrics and labels from those of OTLP, as Prometheus 3 translates them.
//!
//! The rules are those of <https://github.com/prometheus/otlptranslator>, whose names the strategies
//! have. Tested below with the examples of its documentation.

use latewood_model::named;
use std::borrow::Cow;

/// Characters of a name in an error text.
const SHOWN_CHARS_MAX: usize = 100;

named! {
    /// How names are translated: `translation_strategy` of Prometheus.
    #[derive(Default)]
    pub enum Translation {
        /// Names stay as they are sent.
        #[default]
        NoTranslation => "NoTranslation",
        /// Characters that Prometheus 2 did not know become `_`; unit and type are appended.
        UnderscoreEscapingWithSuffixes => "UnderscoreEscapingWithSuffixes",
        /// The same, but nothing is appended.
        UnderscoreEscapingWithoutSuffixes => "UnderscoreEscapingWithoutSuffixes",
        /// Unit and type are appended.
        NoUtf8EscapingWithSuffixes => "NoUTF8EscapingWithSuffixes",
    }
}

/// What becomes of names and of the attributes of resources and scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// How names are translated.
    pub translation: Translation,
    /// Resource attributes that become labels of every series; `*` stands for all of them.
    pub promoted: Vec<String>,
    /// Name, version, schema and attributes of scopes become labels.
    pub scope_labels: bool,
}

/// What the name of a metric depends on beside the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gauge,
    Counter,
    Other,
}

impl Translation {
    /// The strategy of this name, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.name().eq_ignore_ascii_case(name))
    }

    const fn escapes(self) -> bool {
        matches!(
            self,
            Self::UnderscoreEscapingWithSuffixes | Self::UnderscoreEscapingWithoutSuffixes
        )
    }

    /// The name of a metric.
    ///
    /// # Errors
    /// Nothing is left of it.
    pub(super) fn metric<'a>(
        self,
        name: &'a str,
        unit: &str,
        kind: Kind,
    ) -> Result<Cow<'a, str>, String> {
        let translated = match self {
            Self::NoTranslation => return Ok(name.into()),
            Self::NoUtf8EscapingWithSuffixes => return Ok(suffixed(name, unit, kind).into()),
            Self::UnderscoreEscapingWithSuffixes => escaped_and_suffixed(name, unit, kind),
            Self::UnderscoreEscapingWithoutSuffixes => {
                let is_invalid = |letter: char| !is_plain(letter) && letter != '_';
                join(name.split(is_invalid).filter(|part| !part.is_empty()))
            }
        };
        let begins_with_digit = translated.starts_with(|letter: char| letter.is_ascii_digit());
        let underscore = if begins_with_digit { "_" } else { "" };
        checked(name, format!("{underscore}{translated}"))
    }

    /// The name of a label.
    ///
    /// # Errors
    /// Nothing is left of it.
    pub(super) fn label(self, name: &str) -> Result<Cow<'_, str>, String> {
        if !self.escapes() || name.is_empty() {
            return Ok(name.into());
        }
        let is_letter = |letter: char| letter.is_ascii_alphanumeric();
        let plain = |letter| if is_letter(letter) { letter } else { '_' };
        let plain: String = name.chars().map(plain).collect();
        let prefix = match plain.as_bytes() {
            [b'0'..=b'9', ..] => "key_",
            [b'_'] => "key",
            [b'_', second, ..] if *second != b'_' => "key",
            _ => "",
        };
        checked(name, prefix.to_owned() + &plain)
    }
}

impl Naming {
    /// Whether a resource attribute becomes a label of every series.
    pub(super) fn promotes(&self, attribute: &str) -> bool {
        let mut promoted = self.promoted.iter();
        promoted.any(|one| one == "*" || one == attribute)
    }
}

/// A name, unless it became one of underscores alone.
fn checked(from: &str, name: String) -> Result<Cow<'_, str>, String> {
    let is_blank = name.bytes().all(|byte| byte == b'_');
    if is_blank && name != from || name.is_empty() {
        let from: String = from.chars().take(SHOWN_CHARS_MAX).collect();
        return Err(format!(
            "the name {from:?} has no character that can be kept"
        ));
    }
    Ok(name.into())
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == ':'
}

fn join<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts.collect::<Vec<_>>().join("_")
}

/// The name with unit and type, in characters that Prometheus 2 knew.
fn escaped_and_suffixed(name: &str, unit: &str, kind: Kind) -> String {
    let parts = name.split(|letter| !is_plain(letter));
    let mut parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let (main, per) = units(unit);
    let (main, per) = (plain_unit(main), plain_unit(&per));
    // A denominator of which nothing is left is none.
    let is_new = |suffix: &str| !matches!(suffix, "" | "per") && !parts.contains(&suffix);
    let (adds_main, adds_per) = (is_new(&main), is_new(&per));
    if adds_main {
        parts.push(&main);
    }
    if adds_per {
        parts.push(&per);
    }
    if let Some(suffix) = type_suffix(unit, kind) {
        parts.retain(|part| *part != suffix);
        parts.push(suffix);
    }
    join(parts.into_iter())
}

/// A unit without other characters than letters, digits and single underscores between them.
fn plain_unit(unit: &str) -> String {
    let parts = unit.split(|letter| !is_plain(letter));
    join(parts.filter(|part| !part.is_empty()))
}

/// The name with unit and type, otherwise as it is.
fn suffixed(name: &str, unit: &str, kind: Kind) -> String {
    let (main, per) = units(unit);
    let suffix = type_suffix(unit, kind).unwrap_or_default();
    // Suffixes that are there already move to the end.
    let mut name = without(without(name, suffix), &per).to_owned();
    if !name.ends_with(main) {
        name = format!("{name}_{main}");
    }
    for suffix in [&*per, suffix] {
        if !suffix.is_empty() {
            name = format!("{name}_{suffix}");
        }
    }
    name
}

/// A name without this suffix and the character before it.
fn without<'a>(name: &'a str, suffix: &str) -> &'a str {
    let begin = name.strip_suffix(suffix).filter(|_| !suffix.is_empty());
    let shorter = begin.and_then(|begin| begin.char_indices().next_back());
    shorter
        .filter(|(at, _)| *at > 0)
        .map_or(name, |(at, _)| &name[..at])
}

fn type_suffix(unit: &str, kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Counter => Some("total"),
        Kind::Gauge if unit == "1" => Some("ratio"),
        _ => None,
    }
}

/// The suffixes for a unit in UCUM, such as `bytes` and `per_second` of `By/s`; empty for none.
fn units(unit: &str) -> (&str, String) {
    let (main, per) = unit.split_once('/').unwrap_or((unit, ""));
    let known = |unit: &'static [(&str, &str)], name: &str| {
        let found = unit.iter().find(|(short, _)| *short == name);
        found.map(|(_, long)| *long)
    };
    // What is in braces is a remark.
    let is_unit = |text: &&str| !text.contains(['{', '}']);
    let main = Some(main.trim()).filter(is_unit).unwrap_or_default();
    let per = Some(per.trim()).filter(is_unit).unwrap_or_default();
    let long = known(PER_UNITS, per).unwrap_or(per);
    let per = if long.is_empty() {
        String::new()
    } else {
        format!("per_{long}")
    };
    (known(UNITS, main).unwrap_or(main), per)
}

const UNITS: &[(&str, &str)] = &[
    ("d", "days"),
    ("h", "hours"),
    ("min", "minutes"),
    ("s", "seconds"),
    ("ms", "milliseconds"),
    ("us", "microseconds"),
    ("ns", "nanoseconds"),
    ("By", "bytes"),
    ("KiBy", "kibibytes"),
    ("MiBy", "mebibytes"),
    ("GiBy", "gibibytes"),
    ("TiBy", "tibibytes"),
    ("KBy", "kilobytes"),
    ("MBy", "megabytes"),
    ("GBy", "gigabytes"),
    ("TBy", "terabytes"),
    ("m", "meters"),
    ("V", "volts"),
    ("A", "amperes"),
    ("J", "joules"),
    ("W", "watts"),
    ("g", "grams"),
    ("Cel", "celsius"),
    ("Hz", "hertz"),
    ("1", ""),
    ("%", "percent"),
];

const PER_UNITS: &[(&str, &str)] = &[
    ("s", "second"),
    ("m", "minute"),
    ("h", "hour"),
    ("d", "day"),
    ("w", "week"),
    ("mo", "month"),
    ("y", "year"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_named_as_prometheus_names_them() {
        let [none, full, plain, utf8] = Translation::ALL;
        for (name, unit, kind, expected) in [
            (
                "http.server.request.duration",
                "s",
                Kind::Other,
                [
                    "http.server.request.duration",
                    "http_server_request_duration_seconds",
                    "http_server_request_duration",
                    "http.server.request.duration_seconds",
                ],
            ),
            (
                "requests.count",
                "1",
                Kind::Counter,
                [
                    "requests.count",
                    "requests_count_total",
                    "requests_count",
                    "requests.count_total",
                ],
            ),
            (
                "system.network.io",
                "By/s",
                Kind::Gauge,
                [
                    "system.network.io",
                    "system_network_io_bytes_per_second",
                    "system_network_io",
                    "system.network.io_bytes_per_second",
                ],
            ),
            (
                "used.ratio",
                "1",
                Kind::Gauge,
                ["used.ratio", "used_ratio", "used_ratio", "used_ratio"],
            ),
            (
                "total__sent..bytes_total",
                "By",
                Kind::Counter,
                [
                    "total__sent..bytes_total",
                    "sent_bytes_total",
                    "total__sent_bytes_total",
                    "total__sent..bytes_total",
                ],
            ),
            (
                "3d",
                "{thing}/min%",
                Kind::Other,
                ["3d", "_3d_per_min", "_3d", "3d_per_min%"],
            ),
        ] {
            let named = [none, full, plain, utf8].map(|one| one.metric(name, unit, kind).unwrap());
            assert_eq!(named, expected, "{name}");
        }
        for translation in [full, plain] {
            assert!(translation.metric("\u{e9}.", "", Kind::Other).is_err());
            assert!(translation.metric("", "", Kind::Other).is_err());
        }
    }

    #[test]
    fn labels_are_named_as_prometheus_names_them() {
        let full = Translation::UnderscoreEscapingWithSuffixes;
        for (name, expected) in [
            ("http.method", "http_method"),
            ("123invalid", "key_123invalid"),
            ("_private", "key_private"),
            ("__reserved__", "__reserved__"),
            ("a..b", "a__b"),
            (".", "key_"),
            ("", ""),
        ] {
            assert_eq!(full.label(name).unwrap(), expected);
        }
        assert!(full.label("..").is_err());
        assert_eq!(Translation::NoTranslation.label("a.b").unwrap(), "a.b");
        for one in Translation::ALL {
            assert_eq!(Translation::parse(one.name()), Some(one));
        }
        assert_eq!(Translation::parse("None"), None);
    }
}
