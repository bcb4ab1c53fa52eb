//! A measurement as data: its options, each with a default and its meaning, and what runs it.
//!
//! Every option takes a value, lists with commas between them; the last one wins where one is asked
//! for. Tested by `main`, which reads the command of every report.

use std::fmt::Display;
use std::str::FromStr;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use latewood_tls::ClientOptions;

use super::report::Report;
use crate::base::error::{Error, Result};

/// A measurement.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// A line `name=default: meaning` for each option; without a default it may be left out, `off` is
    /// that of one that may stand alone.
    pub(crate) options: &'static [&'static str],
    pub(crate) run: fn(&Options, &mut Report) -> Result<()>,
}

/// What all of them take.
const COMMON: &str = "\
repeats=5: Runs of every setting, alternating
seed=12345: Seed of everything random
json=: File for every run [default: OUT/MODE.json]
out=: Folder for the page and its charts";

/// Options as they were given.
#[derive(Debug)]
pub(crate) struct Options(ArgMatches);

impl Mode {
    /// The subcommand.
    pub(crate) fn command(&self) -> Command {
        let arg = |line: &'static str| {
            let (name, rest) = line.split_once('=').unwrap_or((line, ""));
            let (default, help) = rest.split_once(": ").unwrap_or(("", rest));
            let arg = Arg::new(name).long(name).help(help);
            let arg = arg.action(ArgAction::Append);
            match default {
                "" => arg,
                "off" => arg
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_value("off")
                    .default_missing_value("on"),
                default => arg.default_value(default),
            }
        };
        let texts = self.options.iter().copied().chain([COMMON]);
        let command = Command::new(self.name).about(self.about);
        let command = command.args(texts.flat_map(str::lines).map(arg));
        let has_host = command.get_arguments().any(|arg| arg.get_id() == "host");
        if has_host {
            ClientOptions::augment_args(command)
        } else {
            command
        }
    }
}

impl Options {
    /// What was read of a command.
    pub(crate) fn new(matches: ArgMatches) -> Self {
        Options(matches)
    }

    /// The values of an option, which the mode must have.
    fn values<'a>(&'a self, name: &str) -> Vec<&'a str> {
        let values = self.0.get_many::<String>(name).into_iter().flatten();
        values.map(String::as_str).collect()
    }

    /// The value of an option; empty without one.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.values(name).last().copied().unwrap_or_default()
    }

    /// The same where there is one.
    pub(crate) fn given(&self, name: &str) -> Option<String> {
        Some(self.text(name).to_owned()).filter(|text| !text.is_empty())
    }

    /// Whether an option that may stand alone is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.text(name) == "on"
    }

    /// A number.
    pub(crate) fn get<T: FromStr>(&self, name: &str) -> Result<T> {
        let text = self.text(name);
        text.parse().map_err(|_| wrong(name, text, "a number"))
    }

    /// A number above 0.
    pub(crate) fn count<T: FromStr + PartialOrd + From<u8> + Display>(
        &self,
        name: &str,
    ) -> Result<T> {
        self.at_least(name, T::from(1))
    }

    /// A number from `least` on.
    pub(crate) fn at_least<T: FromStr + PartialOrd + Display>(
        &self,
        name: &str,
        least: T,
    ) -> Result<T> {
        let number = self.get::<T>(name)?;
        if number >= least {
            Ok(number)
        } else {
            Err(wrong(name, self.text(name), &format!("{least} or more")))
        }
    }

    /// A list of numbers from `least` to `most`.
    pub(crate) fn list<T: FromStr + PartialOrd + Display>(
        &self,
        name: &str,
        least: T,
        most: T,
    ) -> Result<Vec<T>> {
        let number = |text: &str| {
            let number = text.parse().ok();
            number
                .filter(|number| (&least..=&most).contains(&number))
                .ok_or_else(|| wrong(name, text, &format!("a number from {least} to {most}")))
        };
        self.words(name).into_iter().map(number).collect()
    }

    /// Shares of a hundred.
    pub(crate) fn percents(&self, name: &str) -> Result<Vec<f64>> {
        self.list(name, 0.0, 100.0)
    }

    /// The one share of a hundred.
    pub(crate) fn percent(&self, name: &str) -> Result<f64> {
        let found = self.percents(name)?.last().copied();
        found.ok_or_else(|| wrong(name, "", "a number from 0 to 100"))
    }

    /// A list of words that `T` knows.
    pub(crate) fn choices<T: ValueEnum>(&self, name: &str) -> Result<Vec<T>> {
        let choice = |text: &str| {
            T::from_str(text, true).map_err(|_| {
                let known = T::value_variants().iter();
                let known = known
                    .filter_map(|known| Some(known.to_possible_value()?.get_name().to_owned()));
                wrong(
                    name,
                    text,
                    &format!("one of {}", known.collect::<Vec<_>>().join(", ")),
                )
            })
        };
        self.words(name).into_iter().map(choice).collect()
    }

    /// How a server that runs already is connected to.
    pub(crate) fn client(&self) -> Result<ClientOptions> {
        let read = ClientOptions::from_arg_matches(&self.0);
        read.map_err(|error| Error::new(error.to_string()))
    }

    /// Runs of every setting.
    pub(crate) fn repeats(&self) -> Result<usize> {
        self.count("repeats")
    }

    /// Seed of everything random.
    pub(crate) fn seed(&self) -> Result<u64> {
        self.get("seed")
    }

    /// The words of a list.
    pub(crate) fn words(&self, name: &str) -> Vec<&str> {
        let values = self.values(name).into_iter();
        values.flat_map(|text| text.split(',')).collect()
    }
}

fn wrong(name: &str, text: &str, wanted: &str) -> Error {
    Error::new(format!("--{name}: {text:?} is not {wanted}"))
}

/// The settings `0..count` in the order round `repeat` takes them: every other round goes
/// backwards, so that none always comes first.
pub(crate) fn turns(repeat: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| {
        if repeat.is_multiple_of(2) {
            at
        } else {
            count - 1 - at
        }
    })
}

/// Options from a command line, for tests.
#[cfg(test)]
pub(crate) fn read(mode: &Mode, words: &str) -> Options {
    let words = format!("{} {words}", mode.name);
    let read = mode
        .command()
        .try_get_matches_from(words.split_whitespace());
    Options(read.unwrap_or_else(|error| panic!("{words}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODE: Mode = Mode {
        name: "x",
        about: "",
        options: &["late=0,10: 
flushed=off: 
series=8: "],
        run: |_, _| Ok(()),
    };

    #[test]
    fn every_other_round_goes_backwards() {
        let order = |repeat| turns(repeat, 3).collect::<Vec<_>>();
        assert_eq!([order(0), order(1)], [[0, 1, 2], [2, 1, 0]]);
        assert_eq!(order(2), order(0));
    }

    #[test]
    fn options_have_defaults_and_wrong_ones_are_named() {
        let given = read(&MODE, "--late 5 --late 50,99 --flushed");
        assert_eq!(given.percents("late").unwrap(), [5.0, 50.0, 99.0]);
        assert!(given.is_on("flushed") && !read(&MODE, "").is_on("flushed"));
        assert_eq!(read(&MODE, "").percents("late").unwrap(), [0.0, 10.0]);
        let error = read(&MODE, "--late 101").percents("late").unwrap_err();
        assert_eq!(
            error.to_string(),
            "--late: \"101\" is not a number from 0 to 100"
        );
        assert!(read(&MODE, "--series 0").count::<u64>("series").is_err());
        assert!(read(&MODE, "--series x").get::<u64>("series").is_err());
    }
}
