//! `latewood backup` and `latewood restore`.

use super::ask::Server;
use super::offsite;
use super::output::{failed, say, tell};
use crate::base::outside::require_outside;
use clap::Args;
use latewood_engine::io::Env;
use latewood_engine::tools;
use latewood_offsite::is_url;
use latewood_tls::ClientOptions;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit status where the backup or its source is damaged or cannot be made.
const FAILED: u8 = 1;

/// Options of `latewood backup`.
#[derive(Args, Debug)]
pub(crate) struct Backup {
    /// Folder to make: on the file system of the data, blocks are linked
    /// instead of copied. Or a place in an object store: s3://BUCKET/PATH,
    /// gs://BUCKET/PATH, az://CONTAINER/PATH or file:///PATH
    #[arg(long, value_name = "PATH|URL")]
    pub(super) to: String,
    /// The running server, on this machine
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6379")]
    pub(super) server: String,
    #[command(flatten)]
    pub(super) tls: ClientOptions,
    /// User to log in as, who may run LATEWOOD BACKUP and INFO, to back up to
    /// a URL also CONFIG GET [default: default]
    #[arg(long, value_name = "NAME", env = "LATEWOOD_BACKUP_USER")]
    pub(super) user: Option<String>,
    /// Password of that user
    #[arg(long, env = "LATEWOOD_REQUIREPASS", hide_env_values = true)]
    pub(super) password: Option<String>,
    /// Back up a directory that no server runs on
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    pub(super) dir: Option<PathBuf>,
}

/// Options of `latewood restore`.
#[derive(Args, Debug)]
pub(crate) struct Restore {
    /// The backup: a folder, or the URL it was uploaded to
    #[arg(value_name = "PATH|URL")]
    from: String,
    /// Directory to restore to; must be empty or missing
    dir: PathBuf,
}

/// Runs `latewood backup`: 0 when it is whole and on disk, else 1.
pub(crate) fn backup(options: &Backup) -> ExitCode {
    ended(match &options.dir {
        _ if is_url(&options.to) => offsite::back_up(options),
        Some(dir) => copy(dir, Path::new(&options.to), "backed up"),
        None => ask_server(options),
    })
}

/// Runs `latewood restore`: 0 when the copy is whole and on disk, else 1.
pub(crate) fn restore(options: &Restore) -> ExitCode {
    ended(if is_url(&options.from) {
        offsite::restore(&options.from, &options.dir)
    } else {
        copy(Path::new(&options.from), &options.dir, "restored")
    })
}

fn ended(outcome: Result<String, String>) -> ExitCode {
    match outcome {
        Ok(line) => {
            say(&line);
            ExitCode::SUCCESS
        }
        Err(reason) => {
            let _ = failed(&reason);
            ExitCode::from(FAILED)
        }
    }
}

fn copy(from: &Path, to: &Path, done: &str) -> Result<String, String> {
    let place = std::path::absolute(to).map_err(|error| error.to_string())?;
    require_outside(from, &place)?;
    let checked = tools::restore(&Env::real(), from, to, &mut tell);
    let checked = checked.map_err(|error| error.to_string())?;
    Ok(format!(
        "{done} {} samples in blocks and {} more in the log to {}; every checksum was verified",
        checked.block_samples,
        checked.unstored_samples,
        to.display()
    ))
}

/// Has the server make it and waits for the end.
fn ask_server(options: &Backup) -> Result<String, String> {
    let path = std::path::absolute(&options.to).map_err(|error| error.to_string())?;
    Server::connect(options)?.back_up(&path)?;
    Ok(format!("backed up to {}", path.display()))
}
