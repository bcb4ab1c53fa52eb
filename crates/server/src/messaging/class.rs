//! Classes of events and the letters that ask for them.

/// What kind of thing happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// `g`: a command that any type of key has, DEL or RENAME say.
    Generic,
    /// `d`: a command of time series.
    Module,
    /// `x`: a key's time was up.
    Expired,
    /// `n`: a key that was not there before.
    New,
    /// `m`: a key that was read and not there.
    Miss,
}

/// The event of a sample that was added.
pub(crate) const ADD_EVENT: &str = "ts.add";

/// Which events are published, and where: the letters of
/// `notify-keyspace-events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notify(u32);

/// Each letter and its bit, in the order in which Redis shows them. The classes
/// of types that do not exist here are kept, so that what was set is shown.
const LETTERS: &[(u8, u32)] = &[
    (b'g', 1 << 0),
    (b'$', 1 << 1),
    (b'l', 1 << 2),
    (b's', 1 << 3),
    (b'h', 1 << 4),
    (b'z', 1 << 5),
    (b'x', 1 << 6),
    (b'e', 1 << 7),
    (b't', 1 << 8),
    (b'd', 1 << 9),
    (b'n', 1 << 10),
    (b'K', 1 << 11),
    (b'E', 1 << 12),
    (b'm', 1 << 13),
];
/// `A` stands for these, all but new and missed keys.
const ALL: u32 = (1 << 10) - 1;
const KEYSPACE: u32 = 1 << 11;
const KEYEVENT: u32 = 1 << 12;

impl Class {
    const fn bit(self) -> u32 {
        match self {
            Self::Generic => 1 << 0,
            Self::Expired => 1 << 6,
            Self::Module => 1 << 9,
            Self::New => 1 << 10,
            Self::Miss => 1 << 13,
        }
    }
}

impl Notify {
    /// The letters there are, as the refusal of another one shows them.
    pub(crate) const LETTERS: &'static str = "'Ag$lshzxeKEtmdn'";

    /// Reads letters; `None` if one is invalid.
    pub(crate) fn parse(letters: &[u8]) -> Option<Self> {
        letters.iter().try_fold(Self(0), |notify, &letter| {
            let bits = match letter {
                b'A' => ALL,
                _ => LETTERS.iter().find(|(known, _)| *known == letter)?.1,
            };
            Some(Self(notify.0 | bits))
        })
    }

    /// The letters as CONFIG GET shows them.
    pub(crate) fn letters(self) -> String {
        let mut text = String::new();
        let mut shown = self.0;
        if shown & ALL == ALL {
            text.push('A');
            shown &= !ALL;
        }
        let letters = LETTERS.iter().filter(|(_, bit)| shown & bit != 0);
        text.extend(letters.map(|(letter, _)| char::from(*letter)));
        text
    }

    /// Whether events of `class` are published anywhere.
    pub(crate) fn has(self, class: Class) -> bool {
        self.0 & class.bit() != 0 && (self.by_key() || self.by_event())
    }

    /// Whether there is a channel for each key.
    pub(crate) fn by_key(self) -> bool {
        self.0 & KEYSPACE != 0
    }

    /// Whether there is a channel for each event.
    pub(crate) fn by_event(self) -> bool {
        self.0 & KEYEVENT != 0
    }

    /// What was packed with [`Notify::bits`], in the lower half.
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits as u32)
    }

    /// For packing into an atomic.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_shown_as_redis_shows_them() {
        for (given, shown) in [
            ("", ""),
            ("KEA", "AKE"),
            ("dgK", "gdK"),
            ("g$lshzxetd", "A"),
            ("Anm", "Anm"),
            ("EmKn", "nKEm"),
        ] {
            assert_eq!(Notify::parse(given.as_bytes()).unwrap().letters(), shown);
        }
        assert_eq!(Notify::parse(b"KEq"), None);
    }

    #[test]
    fn a_class_needs_a_channel_to_go_to() {
        assert!(!Notify::parse(b"d").unwrap().has(Class::Module));
        assert!(Notify::parse(b"KA").unwrap().has(Class::Module));
        assert!(!Notify::parse(b"KA").unwrap().has(Class::New));
    }
}
