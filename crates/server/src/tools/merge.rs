//! `latewood merge`.

use super::output::{failed, say};
use clap::Args;
use latewood_engine::io::Env;
use latewood_engine::io::directory::open_existing;
use latewood_engine::{Db, Defaults, Options, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `latewood merge`.
#[derive(Args, Debug)]
pub(crate) struct Merge {
    /// Directory of the data; no server may be running on it
    dir: PathBuf,
}

/// Runs `latewood merge`: everything goes from the log into blocks, and
/// blocks are merged as far as useful. 0, or 2 with the
/// reason. Damaged data is refused: nothing is made new over a loss.
pub(crate) fn merge(options: &Merge) -> ExitCode {
    match merge_all(&options.dir) {
        Ok(()) => {
            say("merged");
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

fn merge_all(dir: &Path) -> Result<()> {
    let env = Env::real();
    // An empty folder is not made a database of.
    drop(open_existing(&env, dir)?);
    let options = Options {
        background: false,
        strict: true,
        ..Options::default()
    };
    let db = Db::open(&env, dir, options, Defaults::default())?;
    db.flush()?;
    db.merge()?;
    db.close()
}
