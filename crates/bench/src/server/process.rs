//! A server process and its directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use latewood_tls::ClientOptions;
use latewood_wire::resp::Value;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::base::address::Address;
use crate::base::control::Control;
use crate::base::error::{Doing, Error, Result};
use crate::base::http::Http;
use crate::measure::usage;

/// How long a graceful stop may take before the process is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(20);
/// How often to ask a starting server whether it is there.
const ASK_AGAIN: Duration = Duration::from_millis(2);

/// How a server came up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Start {
    pub(crate) took: Duration,
    /// Most anonymous memory it was seen with on the way; 0 where it came up between two looks.
    pub(crate) peak_anonymous_bytes: u64,
}

/// A server of ours. Dropping it stops the process and removes its directory.
#[derive(Debug)]
pub(crate) struct Process {
    child: Option<Child>,
    address: Address,
    dir: TempDir,
    /// What was run last.
    run: Option<Run>,
}

/// How a server is started.
#[derive(Debug)]
struct Run {
    command: Command,
    patience: Duration,
    ready: &'static str,
}

impl Process {
    /// A directory for a server that is not started yet; it will listen at `address`.
    pub(crate) fn prepare(address: Address) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("latewood-bench-").tempdir();
        Ok(Process {
            child: None,
            address,
            dir: dir.doing("make a directory for a server")?,
            run: None,
        })
    }

    /// Makes a certificate of this machine's loopback, has `command` start the server with it, by
    /// options that Latewood and Redis both have, and connects with TLS from now on.
    pub(super) fn encrypt(&mut self, command: &mut Command) -> Result<()> {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).doing("make a certificate")?;
        let [certificate, key] = ["server.crt", "server.key"].map(|name| self.dir().join(name));
        fs::write(&certificate, made.cert.pem()).doing("write a certificate")?;
        fs::write(&key, made.signing_key.serialize_pem()).doing("write a key")?;
        command.arg("--tls-cert-file").arg(&certificate);
        command.arg("--tls-key-file").arg(key);
        let options = ClientOptions {
            cacert: Some(certificate),
            ..ClientOptions::default()
        };
        let connector = options.connector(true).map_err(Error::new)?;
        self.address = self.address.clone().by(connector);
        Ok(())
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The directory it keeps its data in.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Where it keeps its data, within that.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The process id, while it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    pub(crate) fn running(&self) -> Result<u32> {
        self.id().ok_or_else(|| Error::new("the server has ended"))
    }

    /// Runs `command` and waits at most `patience` until it answers a GET of `ready`, or PING where
    /// that is empty. What it prints goes to `output.txt` in its directory.
    pub(super) fn start(
        &mut self,
        command: Command,
        patience: Duration,
        ready: &'static str,
    ) -> Result<Start> {
        let run = Run {
            command,
            patience,
            ready,
        };
        self.run_it(run)
    }

    /// Stops it, takes its files out of the page cache, and starts it again: what it is asked then is
    /// read from the disk.
    pub(crate) fn begin_cold(&mut self) -> Result<Start> {
        self.stop();
        usage::forget_pages(self.dir.path())?;
        let run = self.run.take();
        self.run_it(run.ok_or_else(|| Error::new("the server was not started"))?)
    }

    fn run_it(&mut self, run: Run) -> Result<Start> {
        let Run {
            command,
            patience,
            ready,
        } = self.run.insert(run);
        let output = self.dir.path().join("output.txt");
        let doing = "open the server's output";
        let file = File::options().create(true).append(true).open(&output);
        let file = file.doing(doing)?;
        let copy = file.try_clone().doing(doing)?;
        let began = Instant::now();
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(copy)
            .spawn()
            .doing(format!("run {}", command.get_program().display()))?;
        let child = self.child.insert(child);
        let mut start = Start::default();
        loop {
            // A process that has just ended has no memory; that it ended is noticed below.
            let memory_bytes = usage::anonymous_bytes(child.id()).unwrap_or(0);
            start.peak_anonymous_bytes = start.peak_anonymous_bytes.max(memory_bytes);
            if answers(&self.address, ready) {
                start.took = began.elapsed();
                return Ok(start);
            }
            let ended = child.try_wait().doing("look after the server")?;
            if ended.is_some() || began.elapsed() > *patience {
                let what = ended.map_or("does not answer", |_| "ended");
                let words = fs::read_to_string(&output).unwrap_or_default();
                return Err(Error::new(format!("the server {what}; it said: {words}")));
            }
            thread::sleep(ASK_AGAIN);
        }
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub(crate) fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill().doing("kill the server")?;
            child.wait().doing("wait for the killed server")?;
        }
        Ok(())
    }

    /// Lets process and directory live on after this program; returns the process id.
    pub(crate) fn leave_running(mut self) -> Option<u32> {
        self.dir.disable_cleanup(true);
        self.child.take().map(|child| child.id())
    }

    /// Asks it to stop with SIGTERM and waits; kills it when it takes too long.
    pub(crate) fn stop(&mut self) {
        let Some(child) = &mut self.child else {
            return;
        };
        let asked = kill_process(Pid::from_child(child), Signal::TERM).is_ok();
        let began = Instant::now();
        while asked && began.elapsed() < STOP_PATIENCE {
            if let Ok(Some(_)) = child.try_wait() {
                self.child = None;
                return;
            }
            thread::sleep(ASK_AGAIN);
        }
        // It is about to lose its directory: nothing is left to report to.
        let _ = self.kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

fn answers(address: &Address, ready: &str) -> bool {
    if !ready.is_empty() {
        return Http::new(address).get(ready, &[]).is_ok();
    }
    let pong = Control::connect(address).and_then(|mut control| control.ask("PING"));
    pong.is_ok_and(|reply| reply == Value::Simple(b"PONG".to_vec()))
}
