//! From what is given to settings without gaps.
//!
//! Precedence: flag, environment, file, default. Values are checked here, once,
//! so that the server starts with good settings or not at all.

use super::all;
use super::kind::Kind;
use super::row::{Default, Row, variable};
use crate::state::{Cluster, Settings, cores};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use latewood_engine::Durability;
use latewood_engine::io::Env;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Values by the names of their options, each a list of texts.
type Values = BTreeMap<&'static str, Vec<String>>;

/// The flags that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// The configuration file.
    pub(super) config: Option<PathBuf>,
    pub(super) flags: Values,
}

/// The log in Kafka that a tool reads, with the flags and variables of `serve` for it.
#[derive(Clone, Debug)]
pub(crate) struct GivenLog(pub(crate) Cluster);

/// The only option that is not a setting.
const CONFIG: &str = "config";
/// Variables that are no options of the server, and those of the tools.
const OTHER_VARIABLES: [&str; 8] = [
    "LATEWOOD_CONFIG",
    "LATEWOOD_KAFKA_PASSWORD",
    "LATEWOOD_BACKUP_USER",
    "LATEWOOD_RULES_USER",
    "LATEWOOD_FROM_USER",
    "LATEWOOD_FROM_PASSWORD",
    "LATEWOOD_TO_USER",
    "LATEWOOD_TO_PASSWORD",
];

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new(CONFIG)
            .long(CONFIG)
            .value_name("FILE")
            .help("Read further options from this TOML file [env: LATEWOOD_CONFIG=]")
            .value_parser(clap::value_parser!(PathBuf));
        all().map(argument).fold(command.arg(config), Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(row: &Row) -> Arg {
    let (help, variable, default) = (row.help, row.variable(), row.default_text());
    let (name, value) = row.usage();
    let argument = Arg::new(name)
        .long(name)
        .value_name(value)
        // A number below the range is refused in words that name the option.
        .allow_negative_numbers(true)
        .help(format!("{help} [env: {variable}=] [default: {default}]"));
    match row.kind {
        _ if row.kind.is_list() => argument.action(ArgAction::Append),
        Kind::OnOff(_) | Kind::YesNo(_) => argument.num_args(0..=1).default_missing_value("on"),
        _ => argument,
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let flags = flags(all(), matches);
        let config = matches.get_one::<PathBuf>(CONFIG).cloned();
        Ok(Self { config, flags })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for GivenLog {
    fn augment_args(command: Command) -> Command {
        super::of_log().map(argument).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for GivenLog {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = Sources {
            flags: flags(super::of_log(), matches),
            file: Values::new(),
            environment: |name: &str| std::env::var_os(name),
        };
        let mut settings = Settings::default();
        for row in super::of_log() {
            let put = given.put(row, &mut settings);
            put.map_err(|reason| Error::raw(ErrorKind::ValueValidation, reason + "\n"))?;
        }
        Ok(Self(settings.cluster))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flags of `rows` that were given.
fn flags(rows: impl Iterator<Item = &'static Row>, matches: &ArgMatches) -> Values {
    let given = rows.filter_map(|row| {
        let values = matches.get_many::<String>(row.name())?;
        Some((row.name(), values.cloned().collect()))
    });
    given.collect()
}

/// The settings of `given`, of the variables that `environment` has, of the file
/// and of the defaults.
///
/// # Errors
/// A sentence that names the file or the option that is wrong.
pub(crate) fn resolve(
    given: Given,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<Settings, String> {
    let config = given
        .config
        .or_else(|| environment(&variable(CONFIG)).map(PathBuf::from));
    let file = config.map_or_else(|| Ok(Values::new()), |path| read_file(&path))?;
    let given = Sources {
        flags: given.flags,
        file,
        environment,
    };
    let mut settings = Settings {
        memory_bytes: memory_default(),
        query_threads: cores().min(QUERY_THREADS_MAX) as u64,
        ..Settings::default()
    };
    let mut names = BTreeSet::new();
    for row in all() {
        if given.put(row, &mut settings)? {
            names.insert(row.name());
        }
    }
    require_effect(&names, &settings)?;
    if settings.cluster.log.is_some() && !names.contains("durability") {
        settings.durability = Durability::Sync;
    }
    Ok(settings)
}

/// Refuses what is given, is no default and has no effect as what it needs is missing: whoever gave it
/// takes it for in force.
fn require_effect(given: &BTreeSet<&str>, settings: &Settings) -> Result<(), String> {
    for row in all().filter(|row| given.contains(row.name())) {
        let Some(missing) = row.need.and_then(|need| need(settings)) else {
            continue;
        };
        let mut default = Settings::default();
        let sources = Sources {
            flags: Values::new(),
            file: Values::new(),
            environment: |_: &str| None,
        };
        sources.put(row, &mut default)?;
        if row.kind.show(&mut settings.clone()) != row.kind.show(&mut default) {
            let name = row.name();
            return Err(format!("{name}: needs {missing}; it has no effect here"));
        }
    }
    Ok(())
}

/// Where the values of options come from.
struct Sources<Environment> {
    flags: Values,
    file: Values,
    environment: Environment,
}

impl<Environment: Fn(&str) -> Option<OsString>> Sources<Environment> {
    /// Puts what is given for an option in its place, or its default. Returns whether it is given.
    fn put(&self, row: &Row, settings: &mut Settings) -> Result<bool, String> {
        let variable = match (self.environment)(&row.variable()).map(OsString::into_string) {
            Some(Ok(text)) => Some(vec![text]),
            Some(Err(_)) => return Err(format!("{}: is not UTF-8", row.variable())),
            None => None,
        };
        let default = match row.default {
            Default::Is(text) if !text.is_empty() => Some(vec![text.to_owned()]),
            _ => None,
        };
        let flag = self.flags.get(row.name()).cloned();
        let name = if flag.is_none() && variable.is_some() {
            row.variable()
        } else {
            row.name().to_owned()
        };
        let texts = flag.or(variable);
        let texts = texts.or_else(|| self.file.get(row.name()).cloned());
        let is_given = texts.is_some();
        if let Some(texts) = texts.or(default) {
            let put = row.kind.put(settings, &texts);
            let takes = row.kind.takes();
            put.map_err(|reason| {
                if reason.contains(&takes) {
                    format!("{name}: {reason}")
                } else {
                    format!("{name}: {reason}; it takes {takes}")
                }
            })?;
        }
        Ok(is_given)
    }
}

/// Those of the names of environment variables that look like options and are none.
pub(crate) fn unknown_variables(names: impl IntoIterator<Item = OsString>) -> Vec<String> {
    let names = names.into_iter().filter_map(|name| name.into_string().ok());
    let ours = names.filter(|name| name.starts_with("LATEWOOD_"));
    let is_known = |name: &String| {
        OTHER_VARIABLES.contains(&name.as_str()) || all().any(|row| row.variable() == *name)
    };
    ours.filter(|name| !is_known(name)).collect()
}

/// The options whose values are not the defaults, with both. Passwords are left out.
pub(crate) fn changed(settings: &Settings) -> Vec<Changed> {
    // Without a file and variables nothing can be wrong.
    let Ok(mut defaults) = resolve(Given::default(), |_| None) else {
        return Vec::new();
    };
    let mut settings = settings.clone();
    let rows = all().filter(|row| row.is_shown() && row.name() != "requirepass");
    let all = rows.map(|row| Changed {
        name: row.name(),
        value: row.kind.show(&mut settings),
        default: row.kind.show(&mut defaults),
    });
    all.filter(|one| one.value != one.default).collect()
}

/// An option whose value is not the default.
#[derive(Debug, Serialize)]
pub(crate) struct Changed {
    name: &'static str,
    value: String,
    default: String,
}

/// As many threads of a query as the option takes.
const QUERY_THREADS_MAX: usize = 16;

/// Half of what the process may have; no limit where the system does not say.
fn memory_default() -> u64 {
    let memory_bytes = Env::real().process.memory_bytes();
    memory_bytes.map_or(0, |bytes| bytes / 2)
}

fn read_file(path: &Path) -> Result<Values, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the configuration file {shown}: {error}"))?;
    let wrong = |reason: String| format!("the configuration file {shown} is wrong: {reason}");
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| wrong(error.to_string()))?;
    let mut values = Values::new();
    for (name, value) in &table {
        let row = all().find(|row| row.name() == name);
        let row = row.ok_or_else(|| wrong(format!("unknown option `{name}`")))?;
        let texts = row.kind.texts(value);
        let texts = texts.map_err(|reason| wrong(format!("{name} = {value}: {reason}")))?;
        values.insert(row.name(), texts);
    }
    Ok(values)
}
