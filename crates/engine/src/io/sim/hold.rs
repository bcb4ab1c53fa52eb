//! A slow disk: operations of one kind wait until a test lets them go on.
//!
//! What waits holds no lock of the disk, so everything else goes on meanwhile.

use super::{Op, SimDisk, State};
use parking_lot::MutexGuard;

/// Lets operations go on when it is dropped.
#[derive(Debug)]
pub struct Hold {
    disk: SimDisk,
    op: Op,
}

impl SimDisk {
    /// Has every `create` (for [`Op::Create`]) or `sync` (for [`Op::Sync`]) wait
    /// from now on, until what is returned is dropped. Other operations are not
    /// held up.
    #[must_use]
    pub fn hold(&self, op: Op) -> Hold {
        self.state.lock().held.push(op);
        Hold {
            disk: self.clone(),
            op,
        }
    }

    /// Returns once no test holds up operations of this kind.
    pub(super) fn wait_while_held(&self, state: &mut MutexGuard<'_, State>, op: Op) {
        if state.held.contains(&op) {
            state.waiting += 1;
            self.released
                .wait_while(state, |state| state.held.contains(&op));
            state.waiting -= 1;
        }
    }
}

impl Hold {
    /// How many operations wait now, on the whole disk.
    pub fn waiting(&self) -> usize {
        self.disk.state.lock().waiting
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if let Some(at) = state.held.iter().position(|&held| held == self.op) {
            state.held.swap_remove(at);
        }
        self.disk.released.notify_all();
    }
}
