//! A measurement as data: its options, one a line, and what runs it.
//!
//! Lists take commas, or their option several times; of other options the last one wins. Tested by
//! `main`, which reads the command of every report.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgMatches, Args, Command};

use super::report::Report;
use crate::base::error::Result;

/// A measurement.
pub(crate) struct Mode {
    pub(crate) name: &'static str,
    pub(super) about: &'static str,
    pub(super) options: fn(Command) -> Command,
    pub(super) run: fn(&ArgMatches, &mut Report) -> Result<()>,
}

/// What all of them take.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Common {
    /// Runs of every setting, alternating
    #[arg(long, default_value = "5", value_parser = within(1..=usize::MAX))]
    pub(super) repeats: usize,
    /// Seed of everything random
    #[arg(long, default_value = "12345")]
    pub(super) seed: u64,
    /// File for every run [default: OUT/MODE.json]
    #[arg(long)]
    pub(super) json: Option<PathBuf>,
    /// Folder for the page and its charts
    #[arg(long)]
    pub(super) out: Option<PathBuf>,
}

/// Makes a [`Mode`] that bears the name of the function that runs it, and the type of its options:
/// those with `one` value and a default, those that `may` be left out, `list`s with their defaults,
/// `flag`s, and groups that it has `with` others. A range after `in` limits numbers.
macro_rules! mode {
    (
        $mode:ident: $run:ident($args:ident), $about:literal;
        $(one $one:ident: $one_type:ty = $one_default:literal $(in $one_range:expr)?, $one_help:literal;)*
        $(may $may:ident: $may_type:ty, $may_help:literal;)*
        $(list $list:ident: $list_type:ty = [$($list_default:literal)?] $(in $list_range:expr)?, $list_help:literal;)*
        $(flag $flag:ident, $flag_help:literal;)*
        $(with $with:ident: $with_type:ty;)*
    ) => {
        #[derive(Debug, clap::Parser)]
        struct $args {
            $(#[arg(long, default_value = $one_default, help = $one_help
                $(, value_parser = $crate::run::options::within::<$one_type>($one_range))?)]
            $one: $one_type,)*
            $(#[arg(long, help = $may_help)]
            $may: Option<$may_type>,)*
            $(#[arg(long, value_delimiter = ',', help = $list_help
                $(, default_value = $list_default)?
                $(, value_parser = $crate::run::options::within::<$list_type>($list_range))?)]
            $list: Vec<$list_type>,)*
            $(#[arg(long, help = $flag_help)]
            $flag: bool,)*
            $(#[command(flatten)]
            $with: $with_type,)*
        }

        pub(super) const $mode: $crate::run::options::Mode = $crate::run::options::Mode {
            name: stringify!($run),
            about: $about,
            options: <$args as clap::Args>::augment_args,
            run: |matches, report| {
                let args = <$args as clap::FromArgMatches>::from_arg_matches(matches);
                $run(&args.unwrap_or_else(|error| error.exit()), report)
            },
        };
    };
}
pub(super) use mode;

impl Mode {
    /// The subcommand.
    pub(crate) fn command(&self) -> Command {
        let command = (self.options)(Common::augment_args(Command::new(self.name)));
        command.about(self.about).args_override_self(true)
    }
}

/// Reads a number of a range.
pub(crate) fn within<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> std::result::Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Clone,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("not a number from {} to {}", range.start(), range.end()))
    }
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

/// What a measurement by these words brings, for tests.
#[cfg(test)]
pub(crate) fn measured(mode: &Mode, words: &str) -> Report {
    let words = format!("{} {words}", mode.name);
    let matches = mode.command().get_matches_from(words.split_whitespace());
    let mut report = Report::default();
    report.common = clap::FromArgMatches::from_arg_matches(&matches).unwrap();
    (mode.run)(&matches, &mut report).unwrap();
    report
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    mode! {
        MODE: nothing(Few), "";
        one series: u64 = "8" in 1..=u64::MAX, "";
        list late: f64 = ["0,10"] in 0.0..=100.0, "";
        list users: usize = ["1,8"] in 1..=64, "";
        flag flushed, "";
    }

    fn nothing(_: &Few, _: &mut Report) -> Result<()> {
        Ok(())
    }

    fn read(words: &str) -> std::result::Result<Few, clap::Error> {
        let words = format!("{} {words}", MODE.name);
        MODE.command()
            .try_get_matches_from(words.split(' ').filter(|word| !word.is_empty()))?;
        Few::try_parse_from(words.split(' ').filter(|word| !word.is_empty()))
    }

    #[test]
    fn every_other_round_goes_backwards() {
        let order = |repeat| turns(repeat, 3).collect::<Vec<_>>();
        assert_eq!([order(0), order(1)], [[0, 1, 2], [2, 1, 0]]);
        assert_eq!(order(2), order(0));
    }

    #[test]
    fn options_have_defaults_and_wrong_ones_are_named() {
        let given = read("--late 5 --late 50,99 --flushed").unwrap();
        assert_eq!(given.late, [5.0, 50.0, 99.0]);
        let usual = read("").unwrap();
        assert!(given.flushed && !usual.flushed);
        assert_eq!((usual.late, usual.series), (vec![0.0, 10.0], 8));
        assert_eq!(usual.users, [1, 8]);
        let error = read("--late 101").unwrap_err().to_string();
        assert!(
            error.contains("'101' for '--late <LATE>': not a number from 0 to 100"),
            "{error}"
        );
        assert!(read("--series 0").is_err() && read("--series x").is_err());
        let twice = MODE
            .command()
            .try_get_matches_from(["x", "--series", "1", "--series", "2"]);
        assert_eq!(twice.unwrap().get_one::<u64>("series"), Some(&2));
    }
}
