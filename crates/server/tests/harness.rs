//! Starts servers and speaks to them.

use latewood_wire::resp::{encode_command, skip_reply};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than any answer takes, so that a missing one fails the test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until it is so; where it never is, the test fails.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A running server with a directory of its own; killed when dropped.
pub(crate) struct Server {
    child: Child,
    address: String,
    http: String,
    ready: String,
    log: Receiver<String>,
    dir: TempDir,
}

impl Server {
    /// A server without a log, which starts fast.
    pub(crate) fn start() -> Self {
        Self::with(&["--wal", "off"])
    }

    /// A server with these options.
    pub(crate) fn with(options: &[&str]) -> Self {
        Self::over(tempfile::tempdir().unwrap(), options)
    }

    /// A server with these options over the data in `dir`.
    pub(crate) fn over(dir: TempDir, options: &[&str]) -> Self {
        let child = command(dir.path())
            .args(["--listen", "127.0.0.1:0", "--threads", "2"])
            .args(options)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self::adopt(child, dir)
    }

    /// The server that was started as `child`, with its standard error piped.
    pub(crate) fn adopt(child: Child, dir: TempDir) -> Self {
        Self::adopt_after(child, dir, |_| true)
    }

    /// The same, which must log a line that `is_wanted` before it is ready.
    pub(crate) fn adopt_after(
        mut child: Child,
        dir: TempDir,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, log) = channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut lines = Vec::new();
        let ready = loop {
            let line = log
                .recv_timeout(PATIENCE)
                .expect("the server did not start");
            lines.push(line.clone());
            // As text, or in JSON; an address may be "already in use".
            if line.contains(" ready ") || line.contains("\"ready\"") {
                assert!(lines.iter().any(|line| is_wanted(line)), "{lines:#?}");
                break line;
            }
        };
        let quoted = |name: &str| {
            // As text, or in JSON.
            let marks = [format!("{name}=\""), format!("\"{name}\":\"")];
            let value = marks.iter().find_map(|mark| ready.split(mark).nth(1))?;
            value.split(['"', ' ']).next().map(str::to_owned)
        };
        Self {
            child,
            address: quoted("listen").unwrap(),
            http: quoted("http").unwrap(),
            ready: ready.clone(),
            log,
            dir,
        }
    }

    /// Where its data lies.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The address of HTTP.
    pub(crate) fn http(&self) -> &str {
        &self.http
    }

    /// The address that it told when it was ready as `NAME=ADDRESS`.
    pub(crate) fn told(&self, name: &str) -> String {
        let marks = [' ', '"'].map(|before| format!("{before}{name}="));
        let told = marks.iter().find_map(|mark| self.ready.split(mark).nth(1));
        let told = told.unwrap().trim_start_matches('"');
        told.split(['"', ' ']).next().unwrap().to_owned()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(TcpStream::connect(&self.address).unwrap())
    }

    /// A client that speaks RESP3.
    pub(crate) fn client3(&self) -> Client {
        let mut client = self.client();
        assert!(client.ask("HELLO 3").starts_with("%7\r\n"));
        client
    }

    /// Waits for a line of the log that holds `text`.
    pub(crate) fn wait_for_log(&self, text: &str) -> String {
        loop {
            let line = self.log.recv_timeout(PATIENCE).expect("no such line");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Sends SIGHUP.
    pub(crate) fn hang_up(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }

    /// Sends SIGTERM and waits; whether the process ended well, and its data.
    pub(crate) fn terminate(mut self) -> (bool, TempDir) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let ended_well = self.child.wait().unwrap().success();
        (ended_well, self.take_dir())
    }

    /// Kills the process where it stands; its data.
    pub(crate) fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.take_dir()
    }

    /// Waits until the process ends by itself; whether it ended well.
    pub(crate) fn wait(mut self) -> bool {
        self.child.wait().unwrap().success()
    }

    fn take_dir(&mut self) -> TempDir {
        std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `latewood serve --dir` on `dir`, with no setting of the test's own surroundings.
pub(crate) fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latewood"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LATEWOOD_") {
            command.env_remove(name);
        }
    }
    // Tests run side by side; those of HTTP choose a port.
    command.env("LATEWOOD_HTTP", "off");
    command.arg("serve").arg("--dir").arg(dir);
    command
}

/// One connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            received: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The bytes of one whole reply.
    pub(crate) fn reply(&mut self) -> Vec<u8> {
        let reply = self.reply_or_end();
        reply.unwrap_or_else(|| panic!("closed after {:?}", text(&self.received)))
    }

    /// The same; none where the server closed the connection instead.
    pub(crate) fn reply_or_end(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some((len, _)) = skip_reply(&self.received).unwrap() {
                return Some(self.received.drain(..len).collect());
            }
            let mut buffer = [0; 64 * 1024];
            let read = self.stream.read(&mut buffer).unwrap();
            if read == 0 {
                return None;
            }
            self.received.extend_from_slice(&buffer[..read]);
        }
    }

    /// Sends the words of `line` as one command; the reply as text.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.ask_words(&words(line))
    }

    /// Asks until this is the reply.
    pub(crate) fn wait_until(&mut self, line: &str, wanted: &str) {
        let what = format!("{wanted:?} to {line}");
        eventually(&what, || self.ask(line) == wanted);
    }

    /// Sends one command; the reply as text.
    pub(crate) fn ask_words<A: AsRef<[u8]>>(&mut self, words: &[A]) -> String {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, words);
        self.send(&bytes);
        text(&self.reply())
    }

    /// Each command gets exactly its reply.
    pub(crate) fn expect(&mut self, exchanges: &[(&str, &str)]) {
        for (line, expected) in exchanges {
            assert_eq!(self.ask(line), *expected, "reply to {line}");
        }
    }

    /// Each command gets this error, its line break added.
    pub(crate) fn expect_errors(&mut self, exchanges: &[(&str, &str)]) {
        for (line, expected) in exchanges {
            assert_eq!(
                self.ask(line),
                format!("-{expected}\r\n"),
                "reply to {line}"
            );
        }
    }

    /// All bytes up to the end of the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.received);
        // A reset is an end as well.
        let _ = self.stream.read_to_end(&mut bytes);
        bytes
    }

    /// The number of a field of INFO.
    pub(crate) fn info(&mut self, field: &str) -> u64 {
        let info = self.ask("INFO");
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap().trim().parse().unwrap()
    }
}

/// The words of a line; `''` is an empty word.
pub(crate) fn words(line: &str) -> Vec<&str> {
    let words = line.split(' ');
    words
        .map(|word| if word == "''" { "" } else { word })
        .collect()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The command in the array form.
pub(crate) fn encoded(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(&mut bytes, &words(line));
    bytes
}

/// Numbers that look random and follow from a seed: splitmix64,
/// <https://prng.di.unimi.it/splitmix64.c>.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}
