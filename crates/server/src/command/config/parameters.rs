//! The parameters that only CONFIG has, one row each: what clients and tools ask a
//! Redis server for, answered truthfully.

use crate::messaging::BufferLimit;
use crate::state::Shared;
use latewood_engine::Durability;
use latewood_model::limits::ARGUMENT_BYTES_MAX;

/// A change that was parsed and checked.
pub(crate) type Change = Box<dyn FnOnce(&Shared)>;

/// How a text becomes a change.
#[derive(Clone, Copy)]
pub(crate) enum Set {
    /// A whole number of a range.
    Number(i64, i64, fn(&Shared, i64)),
    YesNo(fn(&Shared, bool)),
    /// Otherwise: the change, or why there is none.
    Text(fn(&str) -> Result<Change, String>),
}

impl Set {
    /// The change that `text` asks for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(self, text: &str) -> Result<Change, String> {
        match self {
            Self::Number(min, max, put) => {
                let number = integer(text, min, max)?;
                Ok(Box::new(move |shared| put(shared, number)))
            }
            Self::YesNo(put) => {
                let is_on = yes_no(text)?;
                Ok(Box::new(move |shared| put(shared, is_on)))
            }
            Self::Text(read) => read(text),
        }
    }
}

pub(crate) struct Parameter {
    /// In lower case.
    pub(crate) name: &'static str,
    /// Its value as text.
    pub(crate) get: fn(&Shared) -> String,
    /// `None` where it cannot be set.
    pub(crate) set: Option<Set>,
}

pub(super) const fn fixed(name: &'static str, get: fn(&Shared) -> String) -> Parameter {
    Parameter {
        name,
        get,
        set: None,
    }
}

pub(super) const fn settable(
    name: &'static str,
    get: fn(&Shared) -> String,
    set: Set,
) -> Parameter {
    Parameter {
        name,
        get,
        set: Some(set),
    }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    settable(
        "client-output-buffer-limit",
        |shared| shared.channels().limit.read().to_string(),
        Set::Text(set_buffer_limit),
    ),
    fixed("port", first_port),
    fixed("bind", |shared| {
        let hosts = shared.settings.listen.iter();
        let hosts = hosts.filter_map(|listen| listen.rsplit_once(':'));
        hosts.map(|(host, _)| host).collect::<Vec<_>>().join(" ")
    }),
    fixed("acl-pubsub-default", |_| "resetchannels".to_owned()),
    fixed("acllog-max-len", |_| {
        crate::acl::log::ENTRIES_MAX.to_string()
    }),
    fixed("ts-libmr-protocol", |_| "INTERNAL".to_owned()),
    fixed("ts-topology-events", |_| "yes".to_owned()),
    fixed("databases", |_| "1".to_owned()),
    fixed("save", |_| String::new()),
    fixed("appendonly", |shared| yes_or_no(shared.settings.wal)),
    fixed("appendfsync", |shared| {
        let name = match shared.settings.durability {
            Durability::Sync => "always",
            Durability::Interval => "everysec",
            Durability::None => "no",
        };
        name.to_owned()
    }),
    fixed("maxmemory-policy", |_| "noeviction".to_owned()),
    fixed("proto-max-bulk-len", |_| ARGUMENT_BYTES_MAX.to_string()),
];

/// The port of the first TCP address, 0 without one.
pub(crate) fn first_port(shared: &Shared) -> String {
    let first = shared.settings.listen.first();
    let port = first.and_then(|listen| listen.rsplit_once(':'));
    port.map_or_else(|| "0".to_owned(), |(_, port)| port.to_owned())
}

pub(super) fn yes_or_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

fn integer(text: &str, min: i64, max: i64) -> Result<i64, String> {
    let value: i64 = text
        .parse()
        .map_err(|_| "argument couldn't be parsed into an integer")?;
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    Err(format!(
        "argument must be between {min} and {max} inclusive"
    ))
}

fn set_buffer_limit(text: &str) -> Result<Change, String> {
    BufferLimit::default().changed_by(text)?;
    let text = text.to_owned();
    Ok(Box::new(move |shared| {
        let mut limit = shared.channels().limit.write();
        // It was read above.
        *limit = limit.changed_by(&text).unwrap_or(*limit);
    }))
}

pub(super) fn yes_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".to_owned()),
    }
}
