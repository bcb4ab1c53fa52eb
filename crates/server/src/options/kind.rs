//! What options take, and which setting each is.

use super::range::Range;
use crate::base::address;
use crate::base::age::Age;
use crate::base::size::Size;
use crate::state::{LinePort, Settings};
use std::path::PathBuf;

/// The place of a setting.
type Field<T> = fn(&mut Settings) -> &mut T;

/// How the configuration file has a value with a form of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Text,
    /// As a whole number.
    Whole,
    Number,
}

/// What an option takes, and which setting it is.
pub(crate) enum Kind {
    Text(Field<String>),
    /// A text; an empty one is none.
    Optional(Field<Option<String>>),
    /// A path; an empty one is none.
    Path(Field<Option<PathBuf>>),
    /// Texts: the option given several times. In one text the letter parts them.
    List(Field<Vec<String>>, Option<char>),
    /// Names of hosts: the option given several times, or parted by commas.
    Hosts(Field<Vec<String>>),
    /// `ADDR:PORT`; an empty one is none.
    Address(Field<Option<String>>),
    /// The same several times, or parted by commas.
    Addresses(Field<Vec<String>>),
    /// Ports of line protocols: the option given several times, or parted by spaces.
    LinePorts(Field<Vec<LinePort>>),
    OnOff(Field<bool>),
    /// The same, which CONFIG calls `yes` and `no`.
    YesNo(Field<bool>),
    /// A whole number.
    Number(Range, Field<u64>),
    /// Bytes, such as `512mb`.
    Bytes(Range, Field<u64>),
    /// Milliseconds, such as `90d`.
    Time(Range, Field<u64>),
    /// One of several words, or a text with a form of its own.
    Form {
        /// What it takes, in words.
        takes: &'static str,
        /// How the file has it.
        written: Written,
        /// Reads it.
        put: fn(&mut Settings, &str) -> Result<(), String>,
        /// Writes it.
        show: fn(&Settings) -> String,
    },
}

/// One of several words, which have a name each.
macro_rules! word {
    ($what:literal, $parse:path, $($place:ident).+, $takes:literal) => {
        Kind::Form {
            takes: $takes,
            written: crate::options::kind::Written::Text,
            put: |settings, text| {
                crate::options::kind::named($what, $parse, &mut settings.$($place).+, text)
            },
            show: |settings| settings.$($place).+.name().to_owned(),
        }
    };
}
pub(super) use word;

/// Puts what `parse` makes of `text` in its place.
///
/// # Errors
/// That there is no such `what`.
pub(super) fn named<T>(
    what: &str,
    parse: impl Fn(&[u8]) -> Option<T>,
    place: &mut T,
    text: &str,
) -> Result<(), String> {
    *place = parse(text.as_bytes()).ok_or_else(|| format!("Invalid {what}: {text}"))?;
    Ok(())
}

pub(super) fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("{text:?} is not supported: expected on or off")),
    }
}

impl Kind {
    /// Puts a value that was given as `texts` in its place.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn put(&self, settings: &mut Settings, texts: &[String]) -> Result<(), String> {
        let text = texts.last().map_or("", String::as_str);
        match self {
            Self::Text(field) => text.clone_into(field(settings)),
            Self::Optional(field) => {
                *field(settings) = Some(text.to_owned()).filter(|text| !text.is_empty());
            }
            Self::Path(field) => {
                *field(settings) = Some(PathBuf::from(text)).filter(|_| !text.is_empty());
            }
            Self::List(field, separator) => *field(settings) = parted(texts, *separator),
            Self::Address(field) => {
                let address = Some(text).filter(|text| !text.is_empty());
                address.map_or(Ok(()), address::check)?;
                *field(settings) = address.map(str::to_owned);
            }
            Self::Addresses(field) => {
                let list = parted(texts, Some(','));
                list.iter().try_for_each(|text| address::check(text))?;
                *field(settings) = list;
            }
            Self::Hosts(field) => {
                let list = parted(texts, Some(','));
                list.iter().try_for_each(|text| address::check_name(text))?;
                *field(settings) = list;
            }
            Self::LinePorts(field) => {
                let list = parted(texts, Some(' '));
                let ports = list.iter().map(|text| text.parse());
                *field(settings) = ports.collect::<Result<_, _>>()?;
            }
            Self::OnOff(field) | Self::YesNo(field) => *field(settings) = on_off(text)?,
            Self::Number(range, field) => *field(settings) = range.number(text)?,
            Self::Bytes(range, field) => {
                let Size(bytes) = text.parse()?;
                *field(settings) = range.check(bytes)?;
            }
            Self::Time(range, field) => {
                let Age(milliseconds) = text.parse()?;
                *field(settings) = range.check(milliseconds)?;
            }
            Self::Form { put, .. } => put(settings, text)?,
        }
        Ok(())
    }

    /// Whether the option may be given several times.
    pub(super) fn is_list(&self) -> bool {
        matches!(
            self,
            Self::List(..) | Self::Hosts(_) | Self::Addresses(_) | Self::LinePorts(_)
        )
    }

    /// The value as CONFIG GET has it.
    pub(crate) fn show(&self, settings: &mut Settings) -> String {
        let word = |is: bool, words: [&str; 2]| words[usize::from(is)].to_owned();
        match self {
            Self::Text(field) => field(settings).clone(),
            Self::Optional(field) | Self::Address(field) => {
                field(settings).clone().unwrap_or_default()
            }
            Self::Path(field) => {
                let path = field(settings).as_ref();
                path.map_or_else(String::new, |path| path.display().to_string())
            }
            Self::List(field, _) | Self::Hosts(field) | Self::Addresses(field) => {
                field(settings).join(" ")
            }
            Self::LinePorts(field) => {
                let ports = field(settings).iter().map(LinePort::to_string);
                ports.collect::<Vec<_>>().join(" ")
            }
            Self::OnOff(field) => word(*field(settings), ["off", "on"]),
            Self::YesNo(field) => word(*field(settings), ["no", "yes"]),
            Self::Number(_, field) | Self::Bytes(_, field) | Self::Time(_, field) => {
                field(settings).to_string()
            }
            Self::Form { show, .. } => show(settings),
        }
    }

    /// What it takes, in words; empty where any text will do.
    pub(super) fn takes(&self) -> String {
        match self {
            // What is wrong with an address, a name or a port says what was expected.
            Self::Text(_)
            | Self::Optional(_)
            | Self::Path(_)
            | Self::List(..)
            | Self::Hosts(_)
            | Self::Address(_)
            | Self::Addresses(_)
            | Self::LinePorts(_) => String::new(),
            Self::OnOff(_) | Self::YesNo(_) => "on or off".to_owned(),
            Self::Number(range, _) | Self::Bytes(range, _) | Self::Time(range, _) => range.takes(),
            Self::Form { takes, .. } => (*takes).to_owned(),
        }
    }

    /// The texts of a value of the configuration file.
    ///
    /// # Errors
    /// What is expected there.
    pub(super) fn texts(&self, value: &toml::Value) -> Result<Vec<String>, String> {
        use toml::Value::{Array, Boolean, Float, Integer, String};
        if let (Self::Form { takes, .. }, Boolean(is_on)) = (self, value)
            && let Some(word) = switch(takes, *is_on)
        {
            return Ok(vec![word.to_owned()]);
        }
        let text = match (self, value) {
            (list, Array(values)) if list.is_list() => {
                let texts = values.iter().map(|value| value.as_str().map(str::to_owned));
                return texts.collect::<Option<_>>().ok_or_else(|| LIST.to_owned());
            }
            (list, _) if list.is_list() => return Err(LIST.to_owned()),
            (Self::OnOff(_) | Self::YesNo(_), Boolean(true)) => "on".to_owned(),
            (Self::OnOff(_) | Self::YesNo(_), Boolean(false)) => "off".to_owned(),
            (Self::OnOff(_) | Self::YesNo(_), String(text)) if on_off(text).is_ok() => text.clone(),
            (Self::OnOff(_) | Self::YesNo(_), _) => {
                return Err("expected \"on\", \"off\", true or false".to_owned());
            }
            (Self::Number(..), Integer(number)) => number.to_string(),
            (Self::Bytes(..) | Self::Time(..), Integer(number)) => number.to_string(),
            (Self::Form { written, .. }, Integer(number)) if *written != Written::Text => {
                number.to_string()
            }
            (Self::Form { written, .. }, Float(number)) if *written == Written::Number => {
                number.to_string()
            }
            (Self::Number(..), _)
            | (
                Self::Form {
                    written: Written::Whole,
                    ..
                },
                _,
            ) => return Err("expected a whole number without quotes".to_owned()),
            (
                Self::Form {
                    written: Written::Number,
                    ..
                },
                _,
            ) => return Err("expected a number without quotes".to_owned()),
            (_, String(text)) => text.clone(),
            (Self::Bytes(..), _) => {
                return Err("expected bytes, such as 1048576 or \"512mb\"".to_owned());
            }
            (Self::Time(..), _) => return Err("expected a time, such as \"90d\"".to_owned()),
            (Self::Form { takes, .. }, _) if !takes.is_empty() => {
                return Err(format!("expected {takes}, in quotes"));
            }
            (_, _) => return Err("expected a text in quotes".to_owned()),
        };
        Ok(vec![text])
    }
}

/// The word that `true` or `false` stands for, if it is one of those that an option takes.
fn switch(takes: &str, is_on: bool) -> Option<&str> {
    let words = if is_on { ["on", "yes"] } else { ["off", "no"] };
    let mut taken = takes.split([' ', ',']);
    taken.find(|word| words.contains(word))
}

/// The parts of all texts that are not empty.
fn parted(texts: &[String], separator: Option<char>) -> Vec<String> {
    let parts = texts.iter().flat_map(|text| {
        let is_separator = |letter| Some(letter) == separator;
        text.split(is_separator).map(str::to_owned)
    });
    parts.filter(|text| !text.is_empty()).collect()
}

const LIST: &str = "expected a list of texts in quotes";
