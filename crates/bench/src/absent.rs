//! Peers that a machine cannot run, or that break off while they are loaded: left out and named,
//! with the reason.
//!
//! A measurement beside peers must not depend on them: no Java, no Debian, no network, another
//! processor, and Latewood's own runs go on. What is left out is said at once on the terminal and
//! on the page. Only peers are: where Latewood fails, the measurement has failed.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Characters of a reason that are kept; a server's last words may be a page long.
const REASON_CHARS: usize = 300;

/// The peers a measurement goes on without.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Absent(Vec<AbsentPeer>);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct AbsentPeer {
    name: String,
    /// In one line.
    reason: String,
}

/// A run that says which server it is of.
pub(crate) trait OfTarget {
    /// The server's name.
    fn target(&self) -> &str;
}

impl Absent {
    /// Takes a turn of `name`, unless it is left out; `None` where it is, or now becomes so.
    ///
    /// # Errors
    /// The turn's, unless `name` is a peer.
    pub(crate) fn turn<T>(
        &mut self,
        name: &str,
        is_peer: bool,
        turn: impl FnOnce() -> Result<T>,
    ) -> Result<Option<T>> {
        if self.has(name) {
            return Ok(None);
        }
        match turn() {
            Err(error) if is_peer => {
                let reason = one_line(&error.to_string());
                eprintln!("*** {name}: NOT MEASURED from here on: {reason}");
                let name = name.to_owned();
                self.0.push(AbsentPeer { name, reason });
                Ok(None)
            }
            outcome => outcome.map(Some),
        }
    }

    /// Whether `name` is left out.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|peer| peer.name == name)
    }

    /// Whether nobody is.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Passes on whether anything was measured at all.
    ///
    /// # Errors
    /// Where `runs` is 0 and peers are the reason.
    pub(crate) fn unless_all(&self, runs: usize) -> Result<()> {
        match runs == 0 && !self.is_empty() {
            true => Err(Error::new(self.sentences(|_| false).join("; "))),
            false => Ok(()),
        }
    }

    /// What is to be said of each beside these runs, all there are.
    pub(crate) fn beside(&self, runs: &[impl OfTarget]) -> Vec<String> {
        self.sentences(|name| runs.iter().any(|run| run.target() == name))
    }

    /// What is to be said of each; `is_there` knows who was measured before it broke off.
    fn sentences(&self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let sentence = |peer: &AbsentPeer| {
            let since = match is_there(&peer.name) {
                true => "not measured to the end, it broke off",
                false => "not measured here",
            };
            format!("{}: {since}: {}", peer.name, peer.reason)
        };
        self.0.iter().map(sentence).collect()
    }
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(REASON_CHARS) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_fails_is_left_out_from_then_on_and_named_with_the_reason() {
        let mut absent = Absent::default();
        let no_java = || Err::<u32, _>(Error::new("install failed:\n  no java"));
        assert_eq!(absent.turn("QuestDB", true, no_java).unwrap(), None);
        let second = absent.turn("QuestDB", true, || -> Result<u32> { unreachable!() });
        assert_eq!(second.unwrap(), None);
        assert_eq!(absent.turn("InfluxDB 1", true, || Ok(7)).unwrap(), Some(7));
        let said = absent.sentences(|_| false);
        assert_eq!(
            said,
            ["QuestDB: not measured here: install failed: no java"]
        );
        let said = absent.sentences(|name| name == "QuestDB");
        assert!(said[0].contains("not measured to the end"));
        assert!(absent.unless_all(1).is_ok());
        let all = absent.unless_all(0).unwrap_err().to_string();
        assert!(all.contains("no java"), "{all}");
    }

    #[test]
    fn latewood_is_never_left_out() {
        let mut absent = Absent::default();
        let failed = absent.turn("Latewood", false, || {
            Err::<(), _>(Error::new("lost a sample"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "lost a sample");
        assert!(absent.is_empty() && absent.unless_all(0).is_ok());
    }

    #[test]
    fn long_last_words_are_cut() {
        let mut absent = Absent::default();
        let words = "é ".repeat(1_000);
        let ended = || Err::<(), _>(Error::new(words.clone()));
        absent.turn("X", true, ended).unwrap();
        let said = absent.sentences(|_| false).remove(0);
        assert!(
            said.chars().count() < 400 && said.ends_with("..."),
            "{said}"
        );
    }
}
