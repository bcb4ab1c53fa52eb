//! Options of the process: addresses, users, connections, threads, the log of messages.

use super::kind::{Kind, Written, word};
use super::nodes::NEEDS_CLUSTER;
use super::range::{CONNECTIONS, THREADS, TIMEOUT};
use super::row::{Row, row};
use crate::messaging::Notify;
use crate::state::{LogFormat, LogLevel, cores};
use std::sync::atomic::Ordering;

pub(super) const ROWS: &[Row] = &[
    row("listen ADDR:PORT", "127.0.0.1:6379")
        .is(Kind::Addresses(|of| &mut of.listen))
        .help("Address and port to serve; may be given several times"),
    row("read-listen ADDR:PORT", "")
        .is(Kind::Addresses(|of| &mut of.read_listen))
        .help(
            "Address and port for clients that only read: READONLY is implied there, so that a \
             follower answers; may be given several times. Needs --cluster",
        )
        .needs(NEEDS_CLUSTER),
    row("unixsocket PATH", "")
        .is(Kind::Path(|of| &mut of.unixsocket))
        .help("Path of a unix socket to serve as well"),
    row("requirepass PASSWORD", "")
        .is(Kind::Text(|of| &mut of.requirepass))
        .help("Password of the user default, for AUTH and HELLO")
        .live(|shared, settings| {
            shared.runtime.set_password(&settings.requirepass);
            Ok(())
        }),
    row("aclfile FILE", "")
        .is(Kind::Path(|of| &mut of.aclfile))
        .help("File of users: read at start and by ACL LOAD, written by ACL SAVE"),
    row("user NAME RULES", "")
        .is(Kind::List(|of| &mut of.users, None))
        .help("A user and its ACL rules; may be given several times, not together with --aclfile"),
    row("protected-mode on|off", "on")
        .is(Kind::YesNo(|of| &mut of.protected_mode))
        .help("Without a password, serve clients on this machine only")
        .live(|shared, settings| {
            let cell = &shared.runtime.protected_mode;
            cell.store(settings.protected_mode, Ordering::Relaxed);
            Ok(())
        }),
    row("threads N", "0")
        .is(Kind::Form {
            takes: "0 to 1024",
            written: Written::Whole,
            put: |settings, text| {
                settings.threads = match THREADS.number(text)? {
                    0 => cores().saturating_sub(1).max(1),
                    threads => threads as usize,
                };
                Ok(())
            },
            show: |settings| settings.threads.to_string(),
        })
        .help("Event loops; 0 is one per core but one"),
    row("maxclients N", "10000")
        .is(Kind::Number(CONNECTIONS, |of| &mut of.connections_max))
        .help("Maximum number of connections")
        .live(|shared, settings| {
            let cell = &shared.runtime.connections_max;
            cell.store(settings.connections_max as usize, Ordering::Relaxed);
            Ok(())
        }),
    row("timeout SECONDS", "0")
        .is(Kind::Number(TIMEOUT, |of| &mut of.idle_timeout_s))
        .help("Close connections that are idle for this long; 0 disables")
        .live(|shared, settings| {
            let cell = &shared.runtime.idle_timeout_s;
            cell.store(settings.idle_timeout_s, Ordering::Relaxed);
            Ok(())
        }),
    row("notify-keyspace-events LETTERS", "")
        .is(Kind::Form {
            takes: "letters of Redis",
            written: Written::Text,
            put: |settings, text| {
                settings.notify = Notify::parse(text.as_bytes()).ok_or_else(|| {
                    let letters = Notify::LETTERS;
                    format!("Invalid event class character. Use {letters}.")
                })?;
                Ok(())
            },
            show: |settings| settings.notify.letters(),
        })
        .help("Keyspace events to publish: KEA publishes all, Ed those of series by event")
        .live(|shared, settings| {
            shared.events.set_notify(settings.notify);
            Ok(())
        }),
    row("log-level LEVEL", "info")
        .is(word!(
            "log level",
            LogLevel::parse,
            log_level,
            "error, warn, info, debug or trace"
        ))
        .help("Least severity that is logged to standard error"),
    row("log-format FORMAT", "text")
        .is(word!(
            "log format",
            LogFormat::parse,
            log_format,
            "text or json"
        ))
        .help("Format of the log: text, or a JSON object per line"),
];
