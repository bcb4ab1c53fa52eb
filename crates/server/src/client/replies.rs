//! Whether replies are sent, as CLIENT REPLY set it.
//!
//! Invariant: OFF holds until ON; SKIP holds for one command.

/// Which replies of a session are sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Replies {
    mode: Mode,
    /// CLIENT REPLY ON is the command under way: its own reply goes out.
    turned_on: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    On,
    Off,
    SkipNext,
}

impl Replies {
    /// Whether every command is answered.
    #[inline]
    pub(crate) fn are_on(self) -> bool {
        self.mode == Mode::On
    }

    /// A command begins. Returns whether it is not answered.
    pub(crate) fn begin(&mut self) -> bool {
        let is_muted = self.mode != Mode::On;
        if self.mode == Mode::SkipNext {
            self.mode = Mode::On;
        }
        self.turned_on = false;
        is_muted
    }

    /// Whether the reply of the command that ends is dropped, given whether it was muted when it
    /// began.
    pub(crate) fn drop_last(self, is_muted: bool) -> bool {
        is_muted && !self.turned_on || self.mode != Mode::On
    }

    /// CLIENT REPLY ON.
    pub(crate) fn turn_on(&mut self) {
        self.mode = Mode::On;
        self.turned_on = true;
    }

    /// CLIENT REPLY OFF.
    pub(crate) fn turn_off(&mut self) {
        self.mode = Mode::Off;
    }

    /// CLIENT REPLY SKIP.
    pub(crate) fn skip_next(&mut self) {
        if self.mode == Mode::On {
            self.mode = Mode::SkipNext;
        }
    }
}
