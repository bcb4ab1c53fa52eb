//! A log elsewhere, in memory, that a test can take away at the worst moment.

use latewood_engine::{Error, ErrorKind, LogStats, Position, RemoteLog, RemotePin, Result};
use parking_lot::{Condvar, Mutex};
use std::fmt;

/// What happens as the log is lost.
type OnLoss = Box<dyn FnOnce() + Send>;

/// Nothing of it is durable before [`TestLog::prove`].
#[derive(Default)]
pub(crate) struct TestLog {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    groups: Vec<Vec<u8>>,
    durable: u64,
    is_proving: bool,
    /// The number of groups that the log still takes, and what is done as it is lost then.
    left: Option<(usize, OnLoss)>,
    is_lost: bool,
}

impl fmt::Debug for TestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TestLog({})", self.newest())
    }
}

impl State {
    fn newest(&self) -> u64 {
        self.groups.len() as u64
    }
}

impl TestLog {
    /// The newest group.
    pub(crate) fn newest(&self) -> u64 {
        self.state.lock().newest()
    }

    /// All groups behind the first `from`, one behind the other.
    pub(crate) fn groups(&self, from: u64) -> Vec<u8> {
        self.state.lock().groups[from as usize..].concat()
    }

    /// All is durable, and all that comes.
    pub(crate) fn prove(&self) {
        self.change(|state| (state.durable, state.is_proving) = (state.newest(), true));
    }

    /// What comes is not durable any more.
    pub(crate) fn stall(&self) {
        self.change(|state| state.is_proving = false);
    }

    /// Another node owns it from now on.
    pub(crate) fn lose(&self) {
        self.change(|state| state.is_lost = true);
    }

    /// The same once it has taken `groups` groups more; then calls `on_loss`, before the one who
    /// appends hears of it.
    pub(crate) fn lose_after(&self, groups: usize, on_loss: impl FnOnce() + Send + 'static) {
        self.change(|state| state.left = Some((groups, Box::new(on_loss))));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }
}

struct Pin;

impl RemotePin for Pin {
    fn read(&self, _: Position, _: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        Ok(())
    }
}

impl RemoteLog for TestLog {
    fn group_bytes_max(&self) -> usize {
        1 << 20
    }

    fn first(&self) -> Result<Option<Position>> {
        Ok(None)
    }

    fn replay(&self, _: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Position> {
        Ok(Position(1))
    }

    fn append(&self, position: Position, group: &[u8]) -> Result<()> {
        let on_loss = {
            let mut state = self.state.lock();
            let lost = state.left.take_if(|(left, _)| *left == 0);
            if let Some((left, _)) = &mut state.left {
                *left -= 1;
            }
            state.is_lost |= lost.is_some();
            lost.map(|(_, on_loss)| on_loss)
        };
        if let Some(on_loss) = on_loss {
            on_loss();
            self.changed.notify_all();
        }
        self.check()?;
        let mut state = self.state.lock();
        assert_eq!(position.0, state.newest() + 1);
        state.groups.push(group.to_vec());
        if state.is_proving {
            state.durable = state.newest();
        }
        Ok(())
    }

    fn durable(&self) -> Position {
        Position(self.state.lock().durable)
    }

    fn sync_to(&self, position: Position) -> Result<()> {
        let mut state = self.state.lock();
        while state.durable < position.0 && !state.is_lost {
            self.changed.wait(&mut state);
        }
        let is_durable = state.durable >= position.0;
        drop(state);
        if is_durable { Ok(()) } else { self.check() }
    }

    fn why_full(&self) -> Option<String> {
        None
    }

    fn check(&self) -> Result<()> {
        if self.state.lock().is_lost {
            Err(Error::new(ErrorKind::Halted, "node 7 owns the log"))
        } else {
            Ok(())
        }
    }

    fn close(&self) -> Result<()> {
        self.check()
    }

    fn pin(&self) -> Box<dyn RemotePin + '_> {
        Box::new(Pin)
    }

    fn stats(&self) -> LogStats {
        LogStats::default()
    }
}
