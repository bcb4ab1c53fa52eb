//! What goes wrong on the disk, and when.
//!
//! Every operation that may go wrong is counted before it is done, whatever
//! becomes of it, so a test can count those of a good run and then have
//! each of them fail in turn.
//!
//! Invariant: each fault strikes once, and a disk without power never works
//! again. Tested by `tests/disk_sim.rs`.

use super::State;
use std::io;

/// What an operation on the disk does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// `File::write_at`.
    Write,
    /// `File::sync` of something written since the last.
    Sync,
    /// `File::sync` with nothing to make durable but perhaps a cut.
    IdleSync,
    /// `File::truncate`.
    Truncate,
    /// A directory of `Disk::create_dir_all`, which is followed by a [`Op::SyncDir`].
    CreateDir,
    /// `Disk::create`.
    Create,
    /// `Disk::rename`.
    Rename,
    /// `Disk::link`.
    Link,
    /// `Disk::remove`.
    Remove,
    /// `Disk::sync_dir`.
    SyncDir,
    /// `File::read_at` and `File::len_bytes`. This and the next two change nothing: they are counted
    /// apart, and no fault of all operations strikes them.
    Read,
    /// `Disk::open` and `Disk::open_to_write`.
    Open,
    /// `Disk::list`.
    List,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The operation answers an error of this kind and does nothing, but a
    /// failed sync leaves its sectors lost for good, as Linux does.
    Fail(io::ErrorKind),
    /// The operation answers Ok and does nothing: as if the code had forgotten
    /// it.
    Skip,
    /// The operation panics.
    Panic,
    /// The power goes: this and every later operation fails.
    PowerCut,
}

/// Trouble for one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which operations count; `None` counts them all.
    pub op: Option<Op>,
    /// How many of them go well first.
    pub after: u64,
    /// What then goes wrong, once.
    pub trouble: Trouble,
}

impl State {
    /// Counts an operation that changes nothing.
    pub(super) fn look(&mut self, op: Op) -> io::Result<()> {
        self.looks.push(op);
        self.strike(|wanted| wanted == Some(op)).map(drop)
    }

    /// Counts an operation and says whether it is to be done.
    pub(super) fn enter(&mut self, op: Op) -> io::Result<bool> {
        self.trace.push(op);
        self.strike(|wanted| wanted.is_none_or(|wanted| wanted == op))
    }

    /// Has the faults strike whose operation `is_wanted`.
    fn strike(&mut self, is_wanted: impl Fn(Option<Op>) -> bool) -> io::Result<bool> {
        if self.dead {
            return Err(io::Error::other("the power is off"));
        }
        let mut done = true;
        for (fault, seen) in &mut self.faults {
            if !is_wanted(fault.op) {
                continue;
            }
            *seen += 1;
            if *seen != fault.after + 1 {
                continue;
            }
            match fault.trouble {
                Trouble::Fail(kind) => return Err(kind.into()),
                Trouble::Skip => done = false,
                Trouble::Panic => panic!("the simulated disk panics"),
                Trouble::PowerCut => {
                    self.dead = true;
                    return Err(io::Error::other("the power goes off"));
                }
            }
        }
        Ok(done)
    }

    pub(super) fn alive(&self) -> io::Result<()> {
        if self.dead {
            Err(io::Error::other("the power is off"))
        } else {
            Ok(())
        }
    }
}
