//! A read request: its user, its parameters, and what the user may read.

mod rights;

use super::brief::Brief;
use super::packing::Accepts;
use super::parameters::{Parameters, Span};
use crate::acl::log::HTTP;
use crate::acl::{Denied, User};
use crate::client::Reading;
use crate::http::answer::Answer;
use crate::http::body::{BODY_BYTES_MAX, Received, receive_in};
use crate::http::context::Context;
use crate::http::permits::{Permits, Unread, bytes_of, shrink};
use crate::labelled::{self, Named, PART_SERIES, TakeNamed};
use crate::observe::reads::add;
use crate::observe::{Endpoint, ReadCounters};
use crate::state::Shared;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use latewood_engine::{Cancel, RangeQuery, SeriesRef};
use latewood_promql::source::{Hold, Selection};
use latewood_wire::selector::Matcher;
use parking_lot::Mutex;
use rights::demand;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::OwnedSemaphorePermit;

/// Bytes of a form, also uncompressed: all selectors as long as they may be.
const FORM_BYTES_MAX: usize = 8 << 20;
/// The same where there are no selectors beside a query in PromQL.
const SHORT_FORM_BYTES_MAX: usize = 1 << 20;

/// A request under way. Its place among the requests goes back with it.
pub(super) struct Asked {
    pub(super) context: Context,
    pub(super) endpoint: Endpoint,
    pub(super) received: Received,
    /// How the answer may be compressed.
    pub(super) accepts: Accepts,
    user: Arc<User>,
    /// For the names of the series that the answer is about.
    memory: Mutex<Option<OwnedSemaphorePermit>>,
    /// Nobody waits for the answer any more.
    unwanted: Arc<AtomicBool>,
    brief: Brief,
    /// As what it began.
    reading: Reading,
}

/// Whoever waits for an answer; dropping it ends the work of who looks.
pub(super) struct Waiting(Arc<AtomicBool>);

/// What becomes of series that the user may not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// One of them refuses the request, as in TS.MGET.
    Refuse,
    /// They are passed over, as in TS.QUERYLABELS.
    PassOver,
}

impl Cancel for Asked {
    fn is_cancelled(&self) -> bool {
        self.unwanted.is_cancelled() || self.is_overdue()
    }
}

impl Asked {
    /// Takes in a request.
    ///
    /// # Errors
    /// 401, 403, 503, and those of its body.
    pub(super) async fn begin(
        context: &Context,
        endpoint: Endpoint,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Self, Answer> {
        add(&context.shared.protocols.reads.of(endpoint).requests, 1);
        let reading = Reading::new(&context.shared, true, 0);
        let user = Self::admit(context, endpoint, headers)?;
        let side = side(context, endpoint);
        let received = receive_in(side, &user, headers, body, body_bytes_max(endpoint)).await?;
        Ok(Self {
            context: context.clone(),
            endpoint,
            received,
            accepts: Accepts::of(headers),
            // A body may take long to come: what counts is what holds at its end.
            user: Self::admit(context, endpoint, headers)?,
            memory: Mutex::default(),
            unwanted: Arc::default(),
            brief: Brief::default(),
            reading,
        })
    }

    /// Who asks, where that user may and the database can be asked.
    fn admit(
        context: &Context,
        endpoint: Endpoint,
        headers: &HeaderMap,
    ) -> Result<Arc<User>, Answer> {
        let user = context.user(headers, (None, None))?;
        demand(context, &user, endpoint.command())?;
        match endpoint {
            // Who is on call looks at a server that is not ready, too.
            Endpoint::Server => {}
            _ if is_of_data(endpoint) => context.ready(false)?,
            _ => context.loaded(false)?,
        }
        Ok(user)
    }

    /// The same with its parameters.
    ///
    /// # Errors
    /// Those of both.
    pub(super) async fn with_parameters(
        context: &Context,
        endpoint: Endpoint,
        request: Request,
    ) -> Result<(Self, Parameters), Answer> {
        let (head, body) = request.into_parts();
        let asked = Self::begin(context, endpoint, &head.headers, body).await?;
        let parameters = Parameters::read(
            &head.uri,
            &head.headers,
            &asked.received,
            body_bytes_max(endpoint),
        )?;
        asked.hold_bytes(parameters.memory_bytes())?;
        Ok((asked, parameters))
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.context.shared
    }

    pub(super) fn permits(&self) -> &Permits {
        side(&self.context, self.endpoint)
    }

    /// What stands for whoever waits for the answer.
    pub(super) fn waiting(&self) -> Waiting {
        Waiting(Arc::clone(&self.unwanted))
    }

    /// True once nobody waits for the answer any more.
    pub(super) fn unwanted(&self) -> &AtomicBool {
        &self.unwanted
    }

    /// Refuses to go on where nobody waits for the answer any more, or the time of
    /// [`Asked::briefly`] is over.
    ///
    /// # Errors
    /// Nobody sees it.
    pub(super) fn check_wanted(&self) -> Result<(), Answer> {
        if self.unwanted.load(Ordering::Relaxed) {
            add(&self.counters().cancelled, 1);
            Err(Answer::busy("the client closed the connection"))
        } else if self.is_overdue() {
            Err(Answer::busy("it takes longer than a moment"))
        } else {
            Ok(())
        }
    }

    /// Runs `work` on a thread for which others wait: what looks whether it is wanted ends it after a
    /// moment. Memory that it took goes back if it fails.
    pub(super) fn briefly<T>(&self, work: impl FnOnce() -> Result<T, Answer>) -> Result<T, Answer> {
        let held = self.held_bytes();
        let done = self.brief.run(work);
        if done.is_err() {
            self.hold_only(held)?;
        }
        done
    }

    /// Whether the time of [`Asked::briefly`] is over.
    pub(super) fn is_overdue(&self) -> bool {
        self.brief.is_over()
    }

    /// Waits until what was read up to now may be answered: under a lease, if reads need one; of a
    /// follower that is fresh still.
    ///
    /// # Errors
    /// 503 where it may not.
    pub(super) async fn proven(&self) -> Result<(), Answer> {
        if !is_of_data(self.endpoint) {
            return Ok(());
        }
        let proven = self.reading.proven(self.shared()).await;
        proven.map_err(|why| Answer::busy(why.to_string()))
    }

    pub(super) fn counters(&self) -> &ReadCounters {
        self.shared().protocols.reads.of(self.endpoint)
    }

    /// The series that pass one of `selectors`, in the order of their labels; with a span, some may be
    /// left out that have no sample in it. May block.
    ///
    /// # Errors
    /// 400 where they are more than a query may be about, 403 where one may not
    /// be read, 503 where there is no memory for their names; where files cannot be read.
    pub(super) fn find(
        &self,
        selectors: &[Vec<Matcher>],
        span: Option<Span>,
        unreadable: Unreadable,
    ) -> Result<Vec<Named>, Answer> {
        let found = self.select(selectors, span, unreadable)?;
        let mut refused = Ok(());
        let mut hold = |bytes| {
            refused = self.check_wanted().and_then(|()| self.hold_bytes(bytes));
            match refused {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        };
        let db = &self.context.shared.db;
        let named = labelled::named(db, found, span.is_some(), &mut hold);
        refused?;
        let mut named = named.map_err(|error| Answer::engine(&error))?;
        labelled::retain_matching(&mut named, selectors);
        self.check_wanted()?;
        Ok(named)
    }

    /// What `find` finds in a span, or found of late, for who may read all series.
    ///
    /// # Errors
    /// As [`Asked::find`].
    pub(super) fn find_recent(
        &self,
        matchers: &[Matcher],
        span: (i64, i64),
        find: impl FnOnce() -> Result<Vec<Named>, Answer>,
    ) -> Result<Arc<[Named]>, Answer> {
        if !self.may_read_all() {
            return Ok(find()?.into());
        }
        let shared = &self.context.shared;
        let mut is_new = false;
        let find = || {
            is_new = true;
            find()
        };
        let found = shared
            .recent
            .get_or_find(&shared.db, matchers, span, find)?;
        if !is_new {
            let limit = shared.db.check_query(found.named.len());
            limit.map_err(|error| Answer::engine(&error))?;
            self.hold_bytes(found.bytes)?;
        }
        Ok(found.named)
    }

    /// As [`labelled::each`] of a selector.
    ///
    /// # Errors
    /// 400 where they are more than a query may be about; where files cannot be read.
    pub(super) fn find_some(
        &self,
        selection: Selection<'_>,
        is_many: &dyn Fn(usize) -> bool,
        hold: &mut Hold<'_>,
        take: &mut TakeNamed<'_>,
    ) -> Result<bool, Answer> {
        if self.is_restricted() {
            return Ok(false);
        }
        let db = &self.context.shared.db;
        let span = Some((selection.from_ms, selection.to_ms));
        let sought = (selection.matchers, span);
        let found = labelled::each(db, sought, is_many, Some(self), hold, take);
        // What was cut is any part, or too much.
        self.check_wanted()?;
        found.map_err(|error| Answer::engine(&error))
    }

    /// The same without their names, and with series that `__key__` would leave out.
    ///
    /// # Errors
    /// 400 and 403 as [`Asked::find`].
    pub(super) fn select(
        &self,
        selectors: &[Vec<Matcher>],
        span: Option<Span>,
        unreadable: Unreadable,
    ) -> Result<Vec<SeriesRef>, Answer> {
        let db = &self.context.shared.db;
        // What is refused must not depend on what happens to have no sample.
        let span = span.filter(|_| !self.is_restricted());
        let span = span.map(|span| (span.from_ms, span.to_ms));
        let mut found = Vec::new();
        // Many selectors that find the same hold it once.
        for matchers in selectors {
            let selected = labelled::select(db, matchers, span, Some(self));
            // What was cut is any part, or too much.
            self.check_wanted()?;
            found.append(&mut selected.map_err(|error| Answer::engine(&error))?);
            if selectors.len() > 1 {
                found.sort_unstable_by_key(|series| series.id);
                found.dedup_by_key(|series| series.id);
            }
        }
        let may_read = |key: &[u8]| self.user.may_read(self.endpoint.command(), key);
        match unreadable {
            Unreadable::PassOver => found.retain(|series| may_read(&series.key)),
            Unreadable::Refuse => {
                let limit = db.check_query(found.len());
                limit.map_err(|error| Answer::engine(&error))?;
                if let Some(refused) = found.iter().find(|series| !may_read(&series.key)) {
                    let log = &self.context.shared.runtime.users.log;
                    log.note_sender(HTTP, Some(Denied::Key), &refused.key, &self.user.name);
                    let text = "no permission to read all matching series";
                    return Err(Answer::new(StatusCode::FORBIDDEN, text));
                }
            }
        }
        Ok(found)
    }

    /// Takes more memory until the answer has gone out.
    ///
    /// # Errors
    /// 503 where other requests hold too much.
    pub(super) fn hold_bytes(&self, bytes: usize) -> Result<(), Answer> {
        let permit = self.permits().memory(bytes)?;
        let mut memory = self.memory.lock();
        match &mut *memory {
            Some(memory) => memory.merge(permit),
            None => *memory = Some(permit),
        }
        Ok(())
    }

    fn held_bytes(&self) -> usize {
        self.memory.lock().as_ref().map_or(0, bytes_of)
    }

    /// Lets the answer, and what its query holds, wait for its reader until what is returned is dropped.
    ///
    /// # Errors
    /// 503 where such answers of the user, or of all, hold too much.
    pub(super) fn begin_waiting(&self, query_bytes: usize) -> Result<Unread, Answer> {
        let bytes = self.held_bytes();
        let query_bytes_max = self.context.work.query_memory.bytes_max();
        let held = (bytes, query_bytes);
        let bytes_max = (Permits::memory_bytes_max(), query_bytes_max);
        self.permits()
            .long_answer(self.user_name(), held, bytes_max)
    }

    /// Gives back the memory that it took but for `bytes`.
    ///
    /// # Errors
    /// 503 where it took less and other requests hold too much.
    pub(super) fn hold_only(&self, bytes: usize) -> Result<(), Answer> {
        let held = self.held_bytes();
        self.hold_bytes(bytes.saturating_sub(held))?;
        if let Some(memory) = &mut *self.memory.lock() {
            shrink(memory, bytes);
        }
        Ok(())
    }

    /// Leaves those of `named` that have a sample in `span`. May block.
    ///
    /// # Errors
    /// Where samples cannot be read.
    pub(super) fn retain_in(&self, named: &mut Vec<Named>, span: Span) -> Result<(), Answer> {
        let query = raw(span);
        let mut order: Vec<usize> = (0..named.len()).collect();
        // What rests in files is read by the page.
        order.sort_unstable_by_key(|&at| named[at].series.id);
        let mut is_seen = vec![false; named.len()];
        for part in order.chunks(PART_SERIES) {
            self.check_wanted()?;
            let refs: Vec<SeriesRef> = part.iter().map(|&at| named[at].series.clone()).collect();
            let mut part = part.iter();
            for one in self.shared().db.views(&refs, &query, false) {
                let is_empty = one.view.is_empty(&query, None);
                let is_empty = is_empty.map_err(|error| Answer::engine(&error))?;
                // One that was removed meanwhile has no view.
                let seen = part.find(|&&at| named[at].series.key == one.key);
                if let Some(&at) = seen {
                    is_seen[at] = !is_empty;
                }
            }
        }
        let mut is_seen = is_seen.into_iter();
        named.retain(|_| is_seen.next() == Some(true));
        Ok(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What requests to `endpoint` share with others.
pub(super) fn side(context: &Context, endpoint: Endpoint) -> &Permits {
    match endpoint {
        Endpoint::Query | Endpoint::QueryRange | Endpoint::Explain => &context.work.queries,
        Endpoint::Queries
        | Endpoint::Cancel
        | Endpoint::Server
        | Endpoint::Backfill
        | Endpoint::Reload => &context.work.control,
        _ => &context.work.readers,
    }
}

/// Whether answers are about the database; the others are about the process.
fn is_of_data(endpoint: Endpoint) -> bool {
    !matches!(
        endpoint,
        Endpoint::Server
            | Endpoint::Status
            | Endpoint::Flags
            | Endpoint::Queries
            | Endpoint::Cancel
            | Endpoint::RuleGroups
            | Endpoint::Reload
    )
}

/// Bytes of a body that is sent to `endpoint`; of a form also uncompressed.
fn body_bytes_max(endpoint: Endpoint) -> usize {
    match endpoint {
        Endpoint::RemoteRead => BODY_BYTES_MAX,
        Endpoint::Series
        | Endpoint::Labels
        | Endpoint::LabelValues
        | Endpoint::Export
        | Endpoint::Federate
        | Endpoint::DeleteSeries => FORM_BYTES_MAX,
        _ => SHORT_FORM_BYTES_MAX,
    }
}

/// All samples of a span.
pub(super) fn raw(span: Span) -> RangeQuery {
    labelled::raw(span.from_ms, span.to_ms)
}
