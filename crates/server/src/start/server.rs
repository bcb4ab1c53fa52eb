//! Starts and stops the server: addresses, data, threads, signals.

use super::node;
use super::notices::Notices;
use super::open::{Opened, open};
use super::{damage, jobs, rules};
use crate::acl::{User, Users, file};
use crate::base::descriptors;
use crate::messaging::{Channels, Events, Mailbox, Mailboxes};
use crate::net::{Acceptor, EventLoop, Listener, bind};
use crate::observe::Observe;
use crate::rules::Manager;
use crate::state::{Database, Failure, Job, Jobs, Lifetime, Settings, Shared, Stop, Way};
use crate::{command, http, lines};
use latewood_engine::{NoticeHook, RecoverySummary};
use latewood_tls::ServerTls;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Writes a sentence of the engine to the log; an error tells that all writes are refused.
fn write_notice(is_error: bool, sentence: &str) {
    if is_error {
        tracing::error!("{sentence}");
    } else {
        tracing::warn!("{sentence}");
    }
}

/// Serves until a signal or SHUTDOWN. Rests first, if it is told how long; a signal ends that too, also
/// in the first process of a container, for which signals have no effect that it does not watch.
///
/// # Errors
/// A sentence that says why the server could not start, or what its stop
/// could not finish.
pub(crate) fn run(settings: Settings, rest: Option<Duration>) -> Result<(), Failure> {
    descriptors::raise_limit();
    let (sender, receiver) = channel();
    let (jobs, queue) = channel();
    let tls = Arc::new(load_tls(&settings)?);
    let manager = Arc::new(Manager::new(&settings.rules, &settings.promql)?);
    let reloaded = (Arc::clone(&tls), Arc::clone(&manager));
    watch_signals(sender.clone(), reloaded)
        .map_err(|error| format!("cannot watch signals: {error}"))?;
    if let Some(why) = rest.and_then(|rest| rest_out(rest, &receiver)) {
        return leave_early(why);
    }
    let notices = Notices::start(write_notice)
        .map_err(|error| format!("cannot start the thread of the log: {error}"))?;
    let sockets = Sockets::bind(&settings)?;
    let addresses = sockets.addresses();
    // Files are for this user alone; the socket of --unixsocket is as the user set it up.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let mut loops = Vec::new();
    for number in 0..settings.threads {
        let event_loop = EventLoop::new(number);
        loops.push(event_loop.map_err(|error| format!("cannot poll events: {error}"))?);
    }
    let mailboxes: Vec<Arc<Mailbox>> = loops.iter().map(EventLoop::mailbox).collect();
    let shared = share(settings, tls, mailboxes.clone(), jobs, sender)?;

    let acceptor = Acceptor::new(sockets.redis, mailboxes.clone())
        .map_err(|error| format!("cannot poll the listening sockets: {error}"))?;
    let acceptor_waker = acceptor.waker();

    let mut handles = Vec::new();
    for (number, event_loop) in loops.into_iter().enumerate() {
        let name = format!("loop-{number}");
        handles.push(spawn(name, &shared, move |shared| event_loop.run(shared))?);
    }
    for number in 0..shared.readers.threads() {
        handles.push(spawn(format!("reader-{number}"), &shared, read)?);
    }
    let name = "acceptor".to_owned();
    handles.push(spawn(name, &shared, move |shared| acceptor.run(shared))?);
    handles.extend(rules::start(&shared, &manager)?);
    let (ports_stop, stop) = watch::channel(false);
    let (context, ports) = (Arc::clone(&shared), (sockets.http, sockets.lines));
    let served = Arc::clone(&manager);
    let serve = move |_: &Shared| serve_ports((&context, served), ports.0, ports.1, stop);
    handles.push(spawn("ports".to_owned(), &shared, serve)?);
    let hook = notices.hook();
    let loader = load(&shared, addresses, queue, hook)?;

    let why = wait(&receiver);
    shared.lifetime.stopping.store(true, Ordering::Release);
    shared.readers.stop();
    manager.stop();
    // Nobody hears it where their thread has failed.
    let _ = ports_stop.send(true);
    for mailbox in &mailboxes {
        mailbox.wake();
    }
    let woken = acceptor_waker.wake();
    woken.map_err(|error| format!("cannot wake the acceptor: {error}"))?;
    if shared.db.is_loading() {
        return leave_early(why);
    }
    handles.push(loader);
    shared.jobs.queue(Job::End);
    finish(why, shared, handles)?;
    drop(notices);
    tracing::info!("stopped");
    Ok(())
}

/// Rests before the start. Returns what ended it early.
fn rest_out(rest: Duration, receiver: &Receiver<Stop>) -> Option<Stop> {
    let rest_ms = rest.as_millis() as u64;
    tracing::info!(rest_ms, "resting before the start");
    receiver.recv_timeout(rest).ok()
}

/// What all threads share, at start.
fn share(
    settings: Settings,
    tls: Arc<ServerTls>,
    mailboxes: Vec<Arc<Mailbox>>,
    jobs: Sender<Job>,
    stop: Sender<Stop>,
) -> Result<Arc<Shared>, String> {
    let users = first_users(&settings)?;
    let channels = Channels::new(Arc::new(Mailboxes::new(mailboxes)));
    let events = Arc::new(Events::new(channels));
    events.set_notify(settings.notify);
    let database =
        Database::closed(settings.defaults()).map_err(|error| format!("cannot start: {error}"))?;
    let shared = Shared::new(
        database,
        settings,
        (
            Users::new(&command::CATALOGUE),
            Observe::new(command::all_commands()),
        ),
        tls,
        events,
        Jobs::new(jobs),
        Lifetime::new(stop),
    );
    if shared.settings.cluster.nodes.is_on {
        let node = node::introduce(&shared.settings)?;
        shared.node.get_or_init(|| node);
    }
    if let Some(users) = users {
        let password = &shared.settings.requirepass;
        shared.runtime.users.replace(users, password);
    }
    Ok(Arc::new(shared))
}

/// Runs long reads until the server stops.
fn read(shared: &Shared) -> io::Result<()> {
    shared.readers.run(shared);
    Ok(())
}

/// Serves HTTP and line protocols on the runtime until `stop` says so.
fn serve_ports(
    (shared, rules): (&Arc<Shared>, Arc<Manager>),
    http: http::Listeners,
    lines: Vec<lines::Bound>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    latewood_tls::runtime()?.block_on(async {
        let http = http::serve(Arc::clone(shared), rules, http, stop.clone());
        tokio::try_join!(http, lines::serve(lines, shared, stop)).map(drop)
    })
}

/// Opens the data on a thread of its own, while the sockets answer LOADING;
/// then the thread runs background jobs.
fn load(
    shared: &Arc<Shared>,
    addresses: Addresses,
    queue: Receiver<Job>,
    notices: NoticeHook,
) -> Result<JoinHandle<()>, String> {
    let weak = Arc::downgrade(shared);
    spawn("jobs".to_owned(), shared, move |shared| {
        let opened = match open(
            &shared.settings,
            &shared.events,
            shared.node.get().cloned(),
            weak,
            notices,
        ) {
            Ok(opened) => opened,
            Err(stop) => {
                shared.lifetime.stop(stop);
                return Ok(());
            }
        };
        thread::scope(|scope| {
            match opened {
                Opened::Alone(db) => {
                    shared.opened(Arc::new(*db));
                    announce(shared, &addresses);
                }
                Opened::Kept(db, keeper) => {
                    keeper.tell(shared);
                    shared.opened(Arc::new(*db));
                    announce(shared, &addresses);
                    scope.spawn(move || keeper.run(shared));
                }
                Opened::Joined(joined) => {
                    scope.spawn(move || joined.run(shared, &addresses));
                }
            }
            jobs::run(shared, &queue);
        });
        Ok(())
    })
}

/// Ends before the data is there: nothing was acknowledged, and opening may be
/// cut short at any point, as a crash would.
fn leave_early(why: Stop) -> Result<(), Failure> {
    match why {
        Stop::Asked(by) => {
            tracing::info!(by, "stopped while loading");
            Ok(())
        }
        Stop::NotOpened(reason) | Stop::Crashed(reason) | Stop::LogLost(reason) => {
            Err(reason.into())
        }
        Stop::Deposed(reason) => Err(failure(reason, Way::Deposed)),
        Stop::Anew(reason) => Err(failure(reason, Way::Anew { was_fresh: false })),
    }
}

/// The users of the ACL file or of the configuration.
fn first_users(settings: &Settings) -> Result<Option<Vec<User>>, String> {
    match &settings.aclfile {
        None if settings.users.is_empty() => Ok(None),
        None => {
            let lines = settings.users.iter().map(|user| format!("user {user}"));
            let text = lines.collect::<Vec<_>>().join("\n");
            file::parse(text.as_bytes(), "user", &command::CATALOGUE).map(Some)
        }
        Some(_) if !settings.users.is_empty() => {
            Err("aclfile and user: only one of them may be given".to_owned())
        }
        Some(path) => file::load(path, &command::CATALOGUE).map(Some),
    }
}

/// The certificates of the ports with TLS.
fn load_tls(settings: &Settings) -> Result<ServerTls, String> {
    let tls = ServerTls::load(&settings.tls)?;
    let mut lines = settings.senders.lines.iter();
    let wanted = [
        ("tls-listen", !settings.tls_listen.is_empty()),
        ("tls-read-listen", !settings.tls_read_listen.is_empty()),
        ("https", settings.senders.https.is_some()),
        ("listen-lines with tls", lines.any(|port| port.is_tls)),
    ];
    match wanted.into_iter().find(|(_, is_wanted)| *is_wanted) {
        Some((name, _)) if tls.in_force().is_none() => {
            Err(format!("{name} needs tls-cert-file and tls-key-file"))
        }
        _ => Ok(tls),
    }
}

fn watch_signals(
    stop: Sender<Stop>,
    (tls, manager): (Arc<ServerTls>, Arc<Manager>),
) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                let name = match signal {
                    SIGTERM => "SIGTERM",
                    SIGINT => "SIGINT",
                    _ => {
                        reload(&tls);
                        rules::reload(&manager);
                        continue;
                    }
                };
                // The receiver is gone only when the server is stopping already.
                let _ = stop.send(Stop::Asked(name));
            }
        })?;
    Ok(())
}

fn reload(tls: &ServerTls) {
    match tls.reload() {
        Ok(()) if tls.in_force().is_some() => tracing::info!("SIGHUP: reloaded the TLS files"),
        Ok(()) => tracing::info!("SIGHUP: there are no TLS files to reload"),
        Err(reason) => tracing::error!(reason, "SIGHUP: the TLS files in force before stay"),
    }
}

/// Runs `body` on a thread of its own; its panic or error stops the server.
pub(super) fn spawn(
    name: String,
    shared: &Arc<Shared>,
    body: impl FnOnce(&Shared) -> io::Result<()> + Send + 'static,
) -> Result<JoinHandle<()>, String> {
    let shared = Arc::clone(shared);
    let thread_name = name.clone();
    let run = move || {
        // A loop that panicked has left its connections in any state; nothing
        // of it is used again, the process ends.
        let why = match catch_unwind(AssertUnwindSafe(|| body(&shared))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => format!("{name} failed: {error}"),
            Err(_) => format!("{name} panicked"),
        };
        shared.lifetime.stop(Stop::Crashed(why));
    };
    thread::Builder::new()
        .name(thread_name.clone())
        .spawn(run)
        .map_err(|error| format!("cannot start the thread {thread_name}: {error}"))
}

/// Every socket that listens, bound before any data is touched.
struct Sockets {
    redis: Vec<Listener>,
    lines: Vec<lines::Bound>,
    http: http::Listeners,
}

impl Sockets {
    fn bind(settings: &Settings) -> Result<Self, String> {
        Ok(Self {
            redis: bind(settings)?,
            lines: lines::bind(settings)?,
            http: http::Listeners {
                plain: http::bind(&settings.senders.http)?,
                tls: http::bind_tls(settings.senders.https.as_deref())?,
            },
        })
    }

    fn addresses(&self) -> Addresses {
        let redis = self.redis.iter().map(Listener::address);
        let lines = self.lines.iter().map(lines::Bound::describe);
        let address = |listener: &Option<TcpListener>| listener.as_ref()?.local_addr().ok();
        Addresses {
            redis: redis.chain(lines).collect(),
            http: address(&self.http.plain),
            https: address(&self.http.tls),
        }
    }
}

/// Where the server is served.
pub(super) struct Addresses {
    redis: Vec<String>,
    http: Option<SocketAddr>,
    https: Option<SocketAddr>,
}

pub(super) fn announce(shared: &Shared, addresses: &Addresses) {
    let shown = |address: Option<SocketAddr>| match address {
        Some(address) => address.to_string(),
        None => "off".to_owned(),
    };
    let recovery = shared.db.recovery();
    let is_remote = shared.remote.get().is_some();
    damage::tell(recovery);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        listen = addresses.redis.join(" "),
        http = shown(addresses.http),
        https = shown(addresses.https),
        dir = %shared.settings.dir.display(),
        durability = shared.settings.durability.name(),
        wal = shared.settings.wal,
        threads = shared.settings.threads,
        recovery = describe(recovery, is_remote),
        "ready"
    );
}

/// What opening the data found and did.
fn describe(recovery: &RecoverySummary, is_remote: bool) -> String {
    let (samples, series) = (recovery.samples, recovery.series);
    let duration_ms = recovery.duration_ns / 1_000_000;
    if recovery.log.groups == 0 {
        return format!("nothing to replay, {duration_ms} ms");
    }
    let whence = match (is_remote, recovery.log.clean) {
        (true, _) => "from Kafka",
        (false, true) => "after a clean stop",
        (false, false) => "after an unclean stop",
    };
    let mut text =
        format!("replayed {samples} samples of {series} series {whence} in {duration_ms} ms");
    if recovery.log.groups_dropped > 0 {
        let dropped = recovery.log.groups_dropped;
        text.push_str(&format!(
            "; dropped {dropped} groups behind a torn end, never acknowledged as durable"
        ));
    }
    text
}

fn wait(receiver: &Receiver<Stop>) -> Stop {
    receiver
        .recv()
        .unwrap_or_else(|_| Stop::Crashed("all threads have ended".to_owned()))
}

fn failure(reason: String, way: Way) -> Failure {
    Failure { reason, way }
}

/// How long a stop waits for work that still uses the database.
const TASKS_MAX: Duration = Duration::from_secs(30);

fn finish(why: Stop, shared: Arc<Shared>, handles: Vec<JoinHandle<()>>) -> Result<(), Failure> {
    let mut flushes = false;
    let failure = match why {
        Stop::Asked(by) => {
            tracing::info!(by, "stopping");
            flushes = by == "SHUTDOWN";
            None
        }
        Stop::LogLost(what) => Some(what.into()),
        // What became of a log in Kafka is in the reason.
        Stop::Crashed(what) | Stop::NotOpened(what) if shared.remote.get().is_some() => {
            Some(what.into())
        }
        Stop::Crashed(what) | Stop::NotOpened(what) => {
            Some(format!("{what}; acknowledged writes are in the log").into())
        }
        Stop::Deposed(what) => Some(failure(what, Way::Deposed)),
        Stop::Anew(what) => {
            let node = shared.node.get();
            let was_fresh = node.is_some_and(|node| node.behind().is_some());
            Some(failure(what, Way::Anew { was_fresh }))
        }
    };
    for handle in handles {
        if handle.join().is_err() {
            return Err("a thread ended in a panic".into());
        }
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    // Tasks that have ended, and work on threads that may block, give their part back soon.
    let begun = Instant::now();
    while Arc::strong_count(&shared) > 1 && begun.elapsed() < TASKS_MAX {
        thread::sleep(Duration::from_millis(1));
    }
    let shared = Arc::into_inner(shared).ok_or("the database is still in use")?;
    if let Some(db) = shared.db.into_opened() {
        let db = Arc::into_inner(db).ok_or("the database is still in use")?;
        if flushes && let Err(error) = db.flush() {
            tracing::warn!(%error, "cannot write blocks; the next start replays the log");
        }
        db.close()
            .map_err(|error| format!("cannot close the database: {error}"))?;
    }
    Ok(())
}
