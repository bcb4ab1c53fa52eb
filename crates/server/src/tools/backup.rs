//! `latewood backup` and `latewood restore`.

use super::{failed, say};
use clap::Args;
use latewood_engine::io::Env;
use latewood_engine::tools::{self, Finding};
use latewood_wire::resp::{encode_command, skip_reply};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

/// Exit status where the backup or its source is damaged or cannot be made.
const FAILED: u8 = 1;
/// How often a running server is asked how far it is.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Options of `latewood backup`.
#[derive(Args, Debug)]
pub(crate) struct Backup {
    /// Folder to make; on the file system of the data, blocks are linked
    /// instead of copied
    #[arg(long, value_name = "PATH")]
    to: PathBuf,
    /// The running server, on this machine
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6379")]
    server: String,
    /// Password of the user `default`
    #[arg(long, env = "LATEWOOD_REQUIREPASS", hide_env_values = true)]
    password: Option<String>,
    /// Back up a directory that no server runs on
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    dir: Option<PathBuf>,
}

/// Options of `latewood restore`.
#[derive(Args, Debug)]
pub(crate) struct Restore {
    /// The backup
    from: PathBuf,
    /// Directory to make from it; must be empty or not there
    dir: PathBuf,
}

/// Runs `latewood backup`: 0 when it is whole and on disk, else 1.
pub(crate) fn backup(options: &Backup) -> ExitCode {
    if let Some(dir) = &options.dir {
        return copy(dir, &options.to, "backed up");
    }
    match ask_server(options) {
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

/// Runs `latewood restore`: 0 when the copy is whole and on disk, else 1.
pub(crate) fn restore(options: &Restore) -> ExitCode {
    copy(&options.from, &options.dir, "restored")
}

fn copy(from: &Path, to: &Path, done: &str) -> ExitCode {
    let mut tell = |finding: &Finding| {
        let kind = if finding.is_damage {
            "damage"
        } else {
            "notice"
        };
        say(&format!("{kind}: {}", finding.what));
    };
    match tools::restore(&Env::real(), from, to, &mut tell) {
        Ok(checked) => {
            say(&format!(
                "{done} {} samples in blocks and {} more in the log to {}; every checksum was verified",
                checked.block_samples,
                checked.unstored_samples,
                to.display()
            ));
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = failed(&error);
            ExitCode::from(FAILED)
        }
    }
}

/// Has the server make it and waits for the end.
fn ask_server(options: &Backup) -> Result<String, String> {
    let path = std::path::absolute(&options.to).map_err(|error| error.to_string())?;
    let path = path.to_str().ok_or("the path is not UTF-8")?;
    let stream = TcpStream::connect(&options.server)
        .map_err(|error| format!("cannot reach {}: {error}", options.server))?;
    let mut server = Server {
        stream,
        received: Vec::new(),
    };
    if let Some(password) = &options.password {
        server.ask(&["AUTH", password])?;
    }
    server.ask(&["LATEWOOD", "BACKUP", path])?;
    loop {
        let info = server.ask(&["INFO", "latewood"])?;
        let field = |name: &str| {
            let mut lines = info.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        if field("backup_in_progress") == Some("0") {
            let status = field("backup_last_status").unwrap_or("unknown");
            return match status {
                "ok" => Ok(format!("backed up to {path}")),
                reason => Err(format!("the backup failed: {reason}")),
            };
        }
        sleep(ASK_EVERY);
    }
}

struct Server {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Server {
    /// The reply to a command, as it came.
    fn ask(&mut self, words: &[&str]) -> Result<String, String> {
        let lost = |error: std::io::Error| format!("lost the server: {error}");
        let mut bytes = Vec::new();
        encode_command(&mut bytes, words);
        self.stream.write_all(&bytes).map_err(lost)?;
        loop {
            if let Some((len, _)) = skip_reply(&self.received).map_err(|error| error.to_string())? {
                let reply: Vec<u8> = self.received.drain(..len).collect();
                let text = String::from_utf8_lossy(&reply).into_owned();
                return match text.strip_prefix('-') {
                    Some(error) => Err(error.trim_end().to_owned()),
                    None => Ok(text),
                };
            }
            let mut buffer = [0; 16 * 1024];
            match self.stream.read(&mut buffer).map_err(lost)? {
                0 => return Err("the server closed the connection".to_owned()),
                read => self.received.extend_from_slice(&buffer[..read]),
            }
        }
    }
}
