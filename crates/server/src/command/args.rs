//! The words of a command, where they lie in the read buffer.

use latewood_wire::resp::Command;

/// The words of a command.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    command: &'a Command,
    buffer: &'a [u8],
    /// Words of the command that stand before these.
    skipped: usize,
    len: usize,
}

impl<'a> Args<'a> {
    /// The words of `command`, which was parsed from the start of `buffer`.
    pub(crate) fn new(command: &'a Command, buffer: &'a [u8]) -> Self {
        Self {
            command,
            buffer,
            skipped: 0,
            len: command.len(),
        }
    }

    /// How many words there are, the name included.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first `len` words; there must be at least `len`.
    pub(crate) fn first(self, len: usize) -> Self {
        Self { len, ..self }
    }

    /// Those of a subcommand: without the container's name. There must be two.
    pub(crate) fn of_subcommand(self) -> Self {
        Self {
            skipped: self.skipped + 1,
            len: self.len - 1,
            ..self
        }
    }

    /// Word `i`, which must exist.
    pub(crate) fn word(&self, i: usize) -> &'a [u8] {
        self.command.arg(self.buffer, self.skipped + i)
    }

    /// Word `i`, if it is there.
    pub(crate) fn get(&self, i: usize) -> Option<&'a [u8]> {
        (i < self.len()).then(|| self.word(i))
    }

    /// Word `i` is `word`, in any case.
    pub(crate) fn is(&self, i: usize, word: &str) -> bool {
        self.get(i)
            .is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The words from `from` on.
    pub(crate) fn from(&self, from: usize) -> impl Iterator<Item = &'a [u8]> + Clone {
        let args = *self;
        (from..self.len()).map(move |i| args.word(i))
    }

    /// The first place at or after `from` that is `word`, in any case.
    pub(crate) fn find(&self, word: &str, from: usize) -> Option<usize> {
        (from..self.len()).find(|&i| self.is(i, word))
    }
}
