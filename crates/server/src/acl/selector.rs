//! One set of permissions: commands, keys, channels.
//!
//! Rules change it one word at a time, in their order. Beside the compiled
//! sets it keeps the command rules that still matter, as Redis writes them:
//! a later rule for the same command, or for a container of it, replaces the
//! earlier one; `+@all` and `-@all` replace everything.
//!
//! A property test compares the compiled form with an evaluator that walks
//! the rules (`command/acl/tests.rs`).

use super::catalogue::{Catalogue, Commands};
use super::category;
use super::denied::Denied;
use crate::base::glob::Glob;
use crate::base::redis_commands;
use std::sync::Arc;

#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    commands: Commands,
    /// `+@all` or `-@all` came last of the two.
    is_all: bool,
    /// Command rules since then, without those that later ones replaced.
    command_rules: Vec<CommandRule>,
    keys: Patterns,
    channels: Patterns,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CommandRule {
    allow: bool,
    /// `name`, `container|name` or `@category`.
    name: String,
}

/// Patterns of keys or channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Patterns {
    are_all: bool,
    list: Vec<Pattern>,
}

#[derive(Clone, Debug)]
struct Pattern {
    text: Box<[u8]>,
    glob: Arc<Glob>,
    read: bool,
    write: bool,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        let parts = |of: &Self| (of.read, of.write);
        self.text == other.text && parts(self) == parts(other)
    }
}

impl Eq for Pattern {}

/// Why a rule is refused, in Redis' words.
pub(crate) type Reason = &'static str;

pub(crate) const SYNTAX: Reason = "Syntax error";
const UNKNOWN: Reason = "Unknown command or category name in ACL";
const USELESS_KEY: Reason = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not \
    valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns";
const USELESS_CHANNEL: Reason = "Adding a pattern after the * pattern (or the 'allchannels' flag) \
    is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of \
    channels";
const TOO_LONG: Reason = "A pattern must be at most 1024 bytes";
/// What a rule takes beside its text and what that is compiled to.
pub(super) const RULE_BYTES: usize = 256;
const FIRST_ARGUMENT: Reason = "Allowing first-arg of a subcommand is not supported";
const FIRST_ARGUMENT_HERE: Reason = "Allowing a command by its first argument is not supported";

/// A command that asks for permission.
pub(crate) struct Request<'a> {
    /// Its number in the catalogue.
    pub(crate) number: usize,
    /// Its keys, and whether it reads and writes them.
    pub(crate) keys: Vec<(&'a [u8], bool, bool)>,
    pub(crate) channels: Vec<&'a [u8]>,
    /// The channels are patterns, which must be allowed as they are written.
    pub(crate) channels_are_patterns: bool,
}

impl Selector {
    /// Applies one rule.
    ///
    /// # Errors
    /// Why it is invalid; nothing changes then.
    pub(crate) fn apply(&mut self, catalogue: &Catalogue, rule: &[u8]) -> Result<(), Reason> {
        let lower = rule.to_ascii_lowercase();
        match lower.as_slice() {
            b"allkeys" => self.keys = Patterns::everything(),
            b"resetkeys" => self.keys = Patterns::default(),
            b"allchannels" => self.channels = Patterns::everything(),
            b"resetchannels" => self.channels = Patterns::default(),
            b"allcommands" | b"+@all" => self.set_all(true),
            b"nocommands" | b"-@all" => self.set_all(false),
            [b'~', ..] => self.keys.add(&rule[1..], (true, true), USELESS_KEY)?,
            [b'%', flags @ ..] => {
                let tilde = flags.iter().position(|byte| *byte == b'~');
                let tilde = tilde.ok_or(SYNTAX)?;
                let access = match &flags[..tilde] {
                    b"r" => (true, false),
                    b"w" => (false, true),
                    b"rw" | b"wr" => (true, true),
                    _ => return Err(SYNTAX),
                };
                self.keys.add(&rule[tilde + 2..], access, USELESS_KEY)?;
            }
            [b'&', ..] => {
                self.channels
                    .add(&rule[1..], (true, true), USELESS_CHANNEL)?;
            }
            [sign @ (b'+' | b'-'), name @ ..] => {
                self.apply_command(catalogue, *sign == b'+', name)?;
            }
            _ => return Err(SYNTAX),
        }
        Ok(())
    }

    fn set_all(&mut self, all: bool) {
        self.commands = Commands::uniform(all);
        self.is_all = all;
        self.command_rules.clear();
    }

    fn apply_command(
        &mut self,
        catalogue: &Catalogue,
        allow: bool,
        name: &[u8],
    ) -> Result<(), Reason> {
        if has_blank(name) {
            return Err(SYNTAX);
        }
        let name = std::str::from_utf8(name).map_err(|_| UNKNOWN)?;
        if let Some(category) = name.strip_prefix('@') {
            let categories = category::find(category.as_bytes()).ok_or(UNKNOWN)?;
            self.commands.set_categories(catalogue, categories, allow);
        } else if let Some(number) = catalogue.number(name) {
            let family = catalogue.entries()[number].family.clone();
            self.commands.set(family, allow);
        } else {
            check_absent(catalogue, allow, name)?;
        }
        self.command_rules.retain(|earlier| {
            let inside = earlier.name.strip_prefix(name);
            !inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
        });
        self.command_rules.push(CommandRule {
            allow,
            name: name.to_owned(),
        });
        Ok(())
    }

    /// Whether the command may run with its keys and channels.
    ///
    /// # Errors
    /// What stands against it, and the place among its keys or channels.
    pub(crate) fn check(&self, request: &Request<'_>) -> Result<(), (Denied, usize)> {
        if !self.commands.contains(request.number) {
            return Err((Denied::Command, 0));
        }
        for (at, (key, reads, writes)) in request.keys.iter().enumerate() {
            if !self.keys.allow(key, *reads, *writes) {
                return Err((Denied::Key, at));
            }
        }
        for (at, channel) in request.channels.iter().enumerate() {
            if !self
                .channels
                .allow_channel(channel, request.channels_are_patterns)
            {
                return Err((Denied::Channel, at));
            }
        }
        Ok(())
    }
    /// Whether command `number`, which reads and writes its keys, may run on
    /// all of `keys`.
    pub(crate) fn allows_on<'a>(
        &self,
        number: usize,
        mut keys: impl Iterator<Item = &'a [u8]>,
    ) -> bool {
        self.commands.contains(number) && keys.all(|key| self.keys.allow(key, true, true))
    }

    /// Whether command `number` may read `key`.
    pub(crate) fn allows_to_read(&self, number: usize, key: &[u8]) -> bool {
        self.commands.contains(number) && self.keys.allow(key, true, false)
    }

    /// Whether command `number` may run on every key.
    pub(crate) fn allows_on_all_keys(&self, number: usize) -> bool {
        self.keys.are_all && self.commands.contains(number)
    }

    /// Whether the channel, or the pattern as it is written, may be listened to.
    pub(crate) fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.channels.allow_channel(channel, is_pattern)
    }

    pub(crate) fn allows_everything(&self) -> bool {
        self.keys.are_all && self.channels.are_all && self.commands == Commands::uniform(true)
    }

    /// The command rules as words.
    pub(crate) fn describe_commands(&self) -> String {
        let mut text = String::from(if self.is_all { "+@all" } else { "-@all" });
        for rule in &self.command_rules {
            text.push_str(if rule.allow { " +" } else { " -" });
            text.push_str(&rule.name);
        }
        text
    }

    /// The patterns of keys as words.
    pub(crate) fn describe_keys(&self) -> Vec<u8> {
        self.keys.describe(|pattern| match pattern {
            (true, false) => "%R~",
            (false, true) => "%W~",
            _ => "~",
        })
    }

    /// The patterns of channels as words.
    pub(crate) fn describe_channels(&self) -> Vec<u8> {
        self.channels.describe(|_| "&")
    }

    /// The memory it takes.
    pub(crate) fn len_bytes(&self) -> usize {
        let lists = [&self.keys.list, &self.channels.list];
        let patterns = lists.into_iter().flatten();
        let patterns = patterns.map(|pattern| pattern.text.len() + pattern.glob.len_bytes());
        let commands = self.command_rules.iter().map(|rule| rule.name.len());
        let rules = patterns.chain(commands).map(|bytes| RULE_BYTES + bytes);
        RULE_BYTES + rules.sum::<usize>()
    }

    /// All rules, as a line of ACL LIST has them.
    pub(crate) fn describe(&self) -> Vec<u8> {
        let mut text = self.describe_keys();
        if !text.is_empty() {
            text.push(b' ');
        }
        if !self.channels.are_all {
            text.extend_from_slice(b"resetchannels ");
        }
        let channels = self.describe_channels();
        if !channels.is_empty() {
            text.extend_from_slice(&channels);
            text.push(b' ');
        }
        text.extend_from_slice(self.describe_commands().as_bytes());
        text
    }
}

/// Whether a line of the ACL file would read `text` as several words, or Redis would.
fn has_blank(text: &[u8]) -> bool {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b);
    text.iter().any(is_blank)
}

/// A rule may name a command of Redis that this server lacks: users are
/// written for both. It has no effect.
fn check_absent(catalogue: &Catalogue, allow: bool, name: &str) -> Result<(), Reason> {
    let (command, first) = match name.split_once('|') {
        Some((command, first)) => (command, Some(first)),
        None => (name, None),
    };
    if redis_commands::is_known(command.as_bytes()) {
        return Ok(());
    }
    let number = catalogue.number(command).ok_or(UNKNOWN)?;
    let has_subcommands = catalogue.entries()[number].family.len() > 1;
    match first {
        Some(first) if allow && first.contains('|') => Err(FIRST_ARGUMENT),
        Some(_) if allow && !has_subcommands => Err(FIRST_ARGUMENT_HERE),
        _ => Err(UNKNOWN),
    }
}

impl Patterns {
    fn everything() -> Self {
        Self {
            are_all: true,
            list: Vec::new(),
        }
    }

    fn add(&mut self, text: &[u8], access: (bool, bool), useless: Reason) -> Result<(), Reason> {
        let (read, write) = access;
        if has_blank(text) {
            return Err(SYNTAX);
        }
        if self.are_all {
            return if text == b"*" { Ok(()) } else { Err(useless) };
        }
        match self.list.iter_mut().find(|known| *known.text == *text) {
            Some(known) => {
                known.read |= read;
                known.write |= write;
            }
            None => self.list.push(Pattern {
                text: text.into(),
                glob: Arc::new(Glob::new(text).map_err(|_| TOO_LONG)?),
                read,
                write,
            }),
        }
        let mut list = self.list.iter();
        if list.any(|known| *known.text == *b"*" && known.read && known.write) {
            *self = Self::everything();
        }
        Ok(())
    }

    fn allow(&self, name: &[u8], reads: bool, writes: bool) -> bool {
        let fits = |pattern: &Pattern| {
            (pattern.read || !reads) && (pattern.write || !writes) && pattern.glob.matches(name)
        };
        self.are_all || self.list.iter().any(fits)
    }

    fn allow_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        if !is_pattern {
            return self.allow(channel, false, false);
        }
        self.are_all || self.list.iter().any(|pattern| *pattern.text == *channel)
    }

    fn describe(&self, mark: impl Fn((bool, bool)) -> &'static str) -> Vec<u8> {
        if self.are_all {
            return [mark((true, true)).as_bytes(), b"*"].concat();
        }
        let mut text = Vec::new();
        for pattern in &self.list {
            if !text.is_empty() {
                text.push(b' ');
            }
            text.extend_from_slice(mark((pattern.read, pattern.write)).as_bytes());
            text.extend_from_slice(&pattern.text);
        }
        text
    }
}
