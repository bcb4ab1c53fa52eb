//! One user: a switch, passwords and permissions.
//!
//! A user never changes: a rule makes a new one out of it, which the sessions
//! of the old one take over ([`super::users`]).

use super::catalogue::Catalogue;
use super::denied::{Denied, Refusal};
use super::password::Hash;
use super::selector::{RULE_BYTES, Reason, Request, SYNTAX, Selector};
use latewood_model::limits::{NAME_BYTES_MAX, USER_BYTES_MAX, USER_RULES_MAX};
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub(crate) struct User {
    /// Its name: any bytes but spaces and zeros.
    pub(crate) name: Box<[u8]>,
    /// The same for all versions of a user, of another one after it was removed.
    pub(crate) identity: u64,
    /// Whether it may log in.
    pub(crate) enabled: bool,
    /// Whether any password is right.
    pub(crate) nopass: bool,
    /// Whether RESTORE checks its payload deeply; kept for Redis' sake, the
    /// payload is always checked.
    sanitizes: bool,
    catalogue: &'static Catalogue,
    passwords: Vec<Hash>,
    root: Selector,
    selectors: Vec<Selector>,
    /// TS.ADD and TS.MADD are allowed on every key.
    pub(crate) adds_anywhere: bool,
    /// Nothing is forbidden.
    pub(crate) is_unrestricted: bool,
}

/// Why rules are refused: the word and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadRule {
    Word(Vec<u8>, Reason),
    /// A selector that begins with this word never ends.
    Unmatched(Vec<u8>),
    /// All of them are over this limit.
    Over(Cow<'static, str>),
}

const NO_SUCH_PASSWORD: Reason =
    "The password you are trying to remove from the user does not exist";
const LONG_SELECTOR: Reason = "A selector must have at most 16384 rules of 1048576 bytes";
const _: () = assert!(USER_RULES_MAX == 16_384 && USER_BYTES_MAX == 1_048_576);
const WRONG_HASH: Reason = "The password hash must be exactly 64 characters and contain only \
    lowercase hexadecimal characters";

impl User {
    /// A user that may do nothing of what `catalogue` lists.
    pub(crate) fn new(name: &[u8], identity: u64, catalogue: &'static Catalogue) -> Self {
        Self {
            name: name.into(),
            identity,
            enabled: false,
            nopass: false,
            sanitizes: true,
            catalogue,
            passwords: Vec::new(),
            root: Selector::default(),
            selectors: Vec::new(),
            adds_anywhere: false,
            is_unrestricted: false,
        }
    }

    /// The user after `rules`, in their order.
    ///
    /// # Errors
    /// The first invalid rule, or a limit.
    pub(crate) fn with(&self, rules: &[Vec<u8>]) -> Result<Self, BadRule> {
        if self.name.len() > NAME_BYTES_MAX {
            let text = format!("the name of a user must be at most {NAME_BYTES_MAX} bytes");
            return Err(BadRule::Over(text.into()));
        }
        let mut user = self.clone();
        for rule in rules {
            let refused = |reason| BadRule::Word(rule.clone(), reason);
            user.apply(rule).map_err(refused)?;
            // At each rule: to add one takes longer the more there are.
            if user.len_bytes() > USER_BYTES_MAX {
                let text = format!("the rules of a user must take at most {USER_BYTES_MAX} bytes");
                return Err(BadRule::Over(text.into()));
            }
        }
        let is_unrestricted = user.all_selectors().any(Selector::allows_everything);
        let adds_anywhere = [self.catalogue.add, self.catalogue.madd];
        let adds_anywhere = adds_anywhere.iter().all(|number| {
            let mut selectors = user.all_selectors();
            selectors.any(|selector| selector.allows_on_all_keys(*number))
        });
        user.is_unrestricted = is_unrestricted;
        user.adds_anywhere = adds_anywhere;
        Ok(user)
    }

    fn apply(&mut self, rule: &[u8]) -> Result<(), Reason> {
        match rule.to_ascii_lowercase().as_slice() {
            b"on" => self.enabled = true,
            b"off" => self.enabled = false,
            b"nopass" => {
                self.nopass = true;
                self.passwords.clear();
            }
            b"resetpass" => {
                self.nopass = false;
                self.passwords.clear();
            }
            b"sanitize-payload" => self.sanitizes = true,
            b"skip-sanitize-payload" => self.sanitizes = false,
            b"reset" => *self = Self::new(&self.name, self.identity, self.catalogue),
            b"clearselectors" => self.selectors.clear(),
            [b'>', ..] => self.add_password(Hash::of(&rule[1..])),
            [b'#', ..] => self.add_password(Hash::parse(&rule[1..]).ok_or(WRONG_HASH)?),
            [b'<', ..] => self.remove_password(Hash::of(&rule[1..]))?,
            [b'!', ..] => self.remove_password(Hash::parse(&rule[1..]).ok_or(WRONG_HASH)?)?,
            [b'(', ..] => {
                let inner = rule[1..].strip_suffix(b")").ok_or(SYNTAX)?;
                let mut selector = Selector::default();
                for (number, word) in split(inner).enumerate() {
                    // A line of the ACL file would end the selector there.
                    if word.ends_with(b")") {
                        return Err(SYNTAX);
                    }
                    selector.apply(self.catalogue, word)?;
                    if number == USER_RULES_MAX || selector.len_bytes() > USER_BYTES_MAX {
                        return Err(LONG_SELECTOR);
                    }
                }
                self.selectors.push(selector);
            }
            _ => self.root.apply(self.catalogue, rule)?,
        }
        Ok(())
    }

    fn add_password(&mut self, hash: Hash) {
        self.nopass = false;
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
    }

    fn remove_password(&mut self, hash: Hash) -> Result<(), Reason> {
        let before = self.passwords.len();
        self.passwords.retain(|known| *known != hash);
        if self.passwords.len() == before {
            return Err(NO_SUCH_PASSWORD);
        }
        Ok(())
    }

    /// Whether the user may log in with this password.
    pub(crate) fn accepts(&self, password: &[u8]) -> bool {
        let given = Hash::of(password);
        // All are looked at, so that the time says nothing of which fits.
        let matches = self.passwords.iter().map(|known| known.matches(&given));
        let is_known = matches.fold(false, |found, is| found | is);
        self.enabled && (self.nopass || is_known)
    }

    /// Whether the command may run.
    ///
    /// # Errors
    /// What the selector that comes nearest to allowing it does not allow.
    pub(crate) fn check(&self, request: &Request<'_>) -> Result<(), Refusal> {
        let mut nearest = (Denied::Command, 0);
        for selector in self.all_selectors() {
            match selector.check(request) {
                Ok(()) => return Ok(()),
                Err(denied) => nearest = nearest.max(denied),
            }
        }
        let (what, at) = nearest;
        let object = match what {
            Denied::Command => self.catalogue.entries()[request.number].name.as_bytes(),
            Denied::Key => request.keys[at].0,
            Denied::Channel => request.channels[at],
        };
        let object = object.to_vec();
        Err(Refusal { what, object })
    }

    /// Whether what other protocols than Redis' send may be written to this
    /// key: a TS.ADD that answers nothing.
    pub(crate) fn may_add(&self, key: &[u8]) -> bool {
        let request = Request {
            number: self.catalogue.add,
            keys: vec![(key, false, true)],
            channels: Vec::new(),
            channels_are_patterns: false,
        };
        self.check(&request).is_ok()
    }

    /// Whether a TS.ADD to this key may run.
    pub(crate) fn may_run_add(&self, key: &[u8]) -> bool {
        let mut selectors = self.all_selectors();
        selectors.any(|selector| selector.allows_on(self.catalogue.add, std::iter::once(key)))
    }

    /// Whether a TS.MADD to these keys may run: one selector must allow all.
    pub(crate) fn may_run_madd<'a>(&self, keys: impl Iterator<Item = &'a [u8]> + Clone) -> bool {
        let mut selectors = self.all_selectors();
        selectors.any(|selector| selector.allows_on(self.catalogue.madd, keys.clone()))
    }

    /// Whether the command of this full name may run, on no key.
    pub(crate) fn may_run(&self, name: &str) -> bool {
        let request = self.catalogue.number(name).map(|number| Request {
            number,
            keys: Vec::new(),
            channels: Vec::new(),
            channels_are_patterns: false,
        });
        request.is_some_and(|request| self.check(&request).is_ok())
    }

    /// Whether the command of this full name may run on every key.
    pub(crate) fn may_run_on_all_keys(&self, name: &str) -> bool {
        self.is_unrestricted
            || self.catalogue.number(name).is_some_and(|number| {
                let mut selectors = self.all_selectors();
                selectors.any(|selector| selector.allows_on_all_keys(number))
            })
    }

    /// Whether the command of this full name may read this key.
    pub(crate) fn may_read(&self, name: &str, key: &[u8]) -> bool {
        self.is_unrestricted
            || self.catalogue.number(name).is_some_and(|number| {
                let mut selectors = self.all_selectors();
                selectors.any(|selector| selector.allows_to_read(number, key))
            })
    }

    /// Whether the command of this full name may read and change this key.
    pub(crate) fn may_change(&self, name: &str, key: &[u8]) -> bool {
        let request = self.catalogue.number(name).map(|number| Request {
            number,
            keys: vec![(key, true, true)],
            channels: Vec::new(),
            channels_are_patterns: false,
        });
        self.is_unrestricted || request.is_some_and(|request| self.check(&request).is_ok())
    }

    /// Whether the channel, or the pattern as it is written, may be listened to.
    pub(crate) fn may_listen(&self, channel: &[u8], is_pattern: bool) -> bool {
        let mut selectors = self.all_selectors();
        selectors.any(|selector| selector.allows_channel(channel, is_pattern))
    }

    /// The permissions beside the selectors.
    pub(crate) fn root(&self) -> &Selector {
        &self.root
    }

    pub(crate) fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    fn all_selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.selectors)
    }

    /// Its switches as ACL GETUSER shows them.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.enabled { "on" } else { "off" }];
        if self.nopass {
            flags.push("nopass");
        }
        flags.push(if self.sanitizes {
            "sanitize-payload"
        } else {
            "skip-sanitize-payload"
        });
        flags
    }

    pub(crate) fn password_hashes(&self) -> impl Iterator<Item = String> + '_ {
        self.passwords.iter().map(Hash::hex)
    }

    /// The memory it takes.
    pub(crate) fn len_bytes(&self) -> usize {
        let passwords = self.passwords.len() * RULE_BYTES;
        let selectors = self.all_selectors().map(Selector::len_bytes);
        RULE_BYTES + self.name.len() + passwords + selectors.sum::<usize>()
    }

    /// The line of ACL LIST and of the ACL file, without a line break.
    pub(crate) fn describe(&self) -> Vec<u8> {
        let mut line = [b"user ", &self.name[..], b" "].concat();
        line.extend_from_slice(self.flags().join(" ").as_bytes());
        for hash in self.password_hashes() {
            line.extend_from_slice(b" #");
            line.extend_from_slice(hash.as_bytes());
        }
        line.push(b' ');
        line.extend_from_slice(&self.root.describe());
        for selector in &self.selectors {
            line.extend_from_slice(b" (");
            line.extend_from_slice(&selector.describe());
            line.push(b')');
        }
        line
    }
}

/// The words of `text` between spaces.
pub(crate) fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// Puts the words of selectors together: `(~a`, `+get)` is one rule.
///
/// # Errors
/// A parenthesis that is never closed, and more than [`USER_RULES_MAX`] words.
pub(crate) fn join_selectors<'a>(
    words: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<Vec<u8>>, BadRule> {
    let mut rules: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<(Vec<u8>, &[u8])> = None;
    for (number, word) in words.enumerate() {
        if number == USER_RULES_MAX {
            let text = format!("a user must have at most {USER_RULES_MAX} rules in one command");
            return Err(BadRule::Over(text.into()));
        }
        let (mut rule, opened_with) = open.take().unwrap_or_else(|| (Vec::new(), word));
        if !rule.is_empty() {
            rule.push(b' ');
        }
        rule.extend_from_slice(word);
        if rule.first() == Some(&b'(') && rule.last() != Some(&b')') {
            open = Some((rule, opened_with));
        } else {
            rules.push(rule);
        }
    }
    match open {
        Some((_, opened_with)) => Err(BadRule::Unmatched(opened_with.to_vec())),
        None => Ok(rules),
    }
}
