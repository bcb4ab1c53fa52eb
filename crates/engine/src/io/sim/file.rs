//! An open file of the disk.
//!
//! A handle knows the number of its file, so it reads and writes on after the
//! file has lost its name, as the kernel lets it.
//!
//! Invariant: a file is cut only through a handle that has written nothing, as
//! [`File::truncate`] asks. Tested by `tests/disk_contract.rs`.

use super::{Op, SimDisk};
use crate::io::File;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct SimFile {
    disk: SimDisk,
    id: u64,
    may_write: bool,
    written: Mutex<bool>,
}

impl SimFile {
    pub(super) fn to_read(disk: &SimDisk, id: u64) -> Arc<dyn File> {
        Self::handle(disk, id, false)
    }

    pub(super) fn to_write(disk: &SimDisk, id: u64) -> Arc<dyn File> {
        Self::handle(disk, id, true)
    }

    fn handle(disk: &SimDisk, id: u64, may_write: bool) -> Arc<dyn File> {
        Arc::new(Self {
            disk: disk.clone(),
            id,
            may_write,
            written: Mutex::new(false),
        })
    }
}

impl File for SimFile {
    fn len_bytes(&self) -> io::Result<u64> {
        let mut state = self.disk.state.lock();
        state.look(Op::Read)?;
        Ok(state.file(self.id).bytes().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.look(Op::Read)?;
        let file = state.file(self.id).bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = file
            .get(start..)
            .and_then(|rest| rest.get(..buffer.len()))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if !self.may_write {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        *self.written.lock() = true;
        let mut state = self.disk.state.lock();
        let entered = state.enter(Op::Write);
        // A write that the power cut met may have got anywhere.
        if matches!(entered, Ok(true)) || state.dead {
            state.file(self.id).write(bytes, offset);
        }
        entered.map(|_| ())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        let op = if state.file(self.id).owes_writes() {
            Op::Sync
        } else {
            Op::IdleSync
        };
        self.disk.wait_while_held(&mut state, op);
        match state.enter(op) {
            Ok(true) => state.file(self.id).sync(),
            Ok(false) => {}
            Err(error) => {
                if !state.dead {
                    state.file(self.id).fail_sync();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn sync_again(&self) -> io::Result<()> {
        self.disk.state.lock().file(self.id).find_lost();
        self.sync()
    }

    fn truncate(&self, len_bytes: u64) -> io::Result<()> {
        if !self.may_write {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if *self.written.lock() || len_bytes > self.len_bytes()? {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut state = self.disk.state.lock();
        if state.enter(Op::Truncate)? {
            state.file(self.id).truncate(len_bytes);
        }
        Ok(())
    }
}
