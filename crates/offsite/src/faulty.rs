//! An object store in memory in which whatever a test wants goes wrong.
//!
//! Every request is counted and shown to the plan of the test before it is done;
//! the plan says what goes wrong with it. Clones are the same store under the same
//! plan. Tested by the tests that use it: each sees its faults arrive.

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The store is overloaded and does nothing.
    Unavailable,
    /// The request is done, but its answer is lost.
    Unanswered,
    /// The answer takes this number of turns of the runtime.
    Late(u32),
    /// The key has no right to do this.
    Denied,
    /// A read answers with one wrong bit.
    WrongBit,
    /// A read ends in the middle, without an error.
    Cut,
    /// A read ends in the middle, or a deletion after two objects, with an error.
    Broken,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// An object written at once.
    Put,
    /// The begin of an upload in parts.
    Begin,
    /// A part.
    Part,
    /// The end of an upload in parts: the object appears.
    Complete,
    /// The end of an upload in parts that is given up.
    Abort,
    /// The bytes of an object.
    Get,
    /// The length of an object.
    Head,
    /// Objects below a prefix.
    List,
    /// Objects deleted.
    Delete,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// How many requests came before.
    pub number: u64,
    /// What it asks for.
    pub verb: Verb,
    /// The object or prefix; empty for parts and deletions.
    pub object: &'a str,
}

type Plan = Box<dyn FnMut(Request<'_>) -> Fault + Send>;

/// The store.
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<InMemory>,
    plan: Arc<Mutex<Plan>>,
    asked: Arc<AtomicU64>,
    ages: Arc<Mutex<BTreeMap<Path, Duration>>>,
}

impl FaultyStore {
    /// An empty store under this plan.
    pub fn new(plan: impl FnMut(Request<'_>) -> Fault + Send + 'static) -> Self {
        Self {
            inner: Arc::default(),
            plan: Arc::new(Mutex::new(Box::new(plan))),
            asked: Arc::default(),
            ages: Arc::default(),
        }
    }

    /// An empty store in which nothing goes wrong.
    pub fn good() -> Self {
        Self::new(|_| Fault::None)
    }

    /// The same objects under another plan; requests are counted from 0.
    #[must_use]
    pub fn with(&self, plan: impl FnMut(Request<'_>) -> Fault + Send + 'static) -> Self {
        Self {
            inner: self.inner.clone(),
            ages: self.ages.clone(),
            ..Self::new(plan)
        }
    }

    /// The same objects, in a store that answers the first `answers` requests only.
    #[must_use]
    pub fn with_answers(&self, answers: u64) -> Self {
        self.with(move |request| {
            if request.number < answers {
                Fault::None
            } else {
                Fault::Unavailable
            }
        })
    }

    /// How many requests came.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Makes all objects of now this much older.
    pub fn age(&self, by: Duration) {
        let all = futures_util::FutureExt::now_or_never(self.inner.list(None).collect::<Vec<_>>());
        let mut ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
        for meta in all.into_iter().flatten().flatten() {
            *ages.entry(meta.location).or_default() += by;
        }
    }

    /// What goes wrong with the request that comes now.
    fn ask(&self, verb: Verb, object: &str) -> Fault {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan(Request {
            number,
            verb,
            object,
        })
    }

    /// Does a request as its fault has it.
    async fn request<T>(fault: Fault, work: impl Future<Output = Result<T>>) -> Result<T> {
        match fault {
            Fault::Unavailable => return Err(unavailable()),
            Fault::Denied => return Err(denied()),
            _ => {}
        }
        let done = work.await;
        match fault {
            Fault::Unanswered => return Err(unavailable()),
            Fault::Late(turns) => {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            }
            _ => {}
        }
        done
    }

    fn aged(&self, mut meta: ObjectMeta) -> ObjectMeta {
        let ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(age) = ages.get(&meta.location) {
            meta.last_modified -= *age;
        }
        meta
    }
}

fn unavailable() -> Error {
    Error::Generic {
        store: "faulty",
        source: "503 SlowDown: the connection is gone".into(),
    }
}

fn denied() -> Error {
    Error::PermissionDenied {
        path: String::new(),
        source: "403 AccessDenied".into(),
    }
}

/// An answer with bytes that are not those of the object.
async fn spoilt(answer: GetResult, fault: Fault) -> Result<GetResult> {
    let (meta, range, attributes) = (
        answer.meta.clone(),
        answer.range.clone(),
        answer.attributes.clone(),
    );
    let extensions = answer.extensions.clone();
    let whole = answer.bytes().await?;
    let half = whole.slice(..whole.len() / 2);
    let pieces = match fault {
        Fault::WrongBit => {
            let mut bytes = whole.to_vec();
            if let Some(byte) = bytes.get_mut(whole.len() / 2) {
                *byte ^= 1;
            }
            vec![Ok(bytes.into())]
        }
        Fault::Cut => vec![Ok(half)],
        _ => vec![Ok(half), Err(unavailable())],
    };
    Ok(GetResult {
        payload: GetResultPayload::Stream(stream::iter(pieces).boxed()),
        meta,
        range,
        attributes,
        extensions,
    })
}

impl std::fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("faulty")
    }
}

impl std::fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, at: &Path, bytes: PutPayload, how: PutOptions) -> Result<PutResult> {
        let fault = self.ask(Verb::Put, at.as_ref());
        let done = Self::request(fault, self.inner.put_opts(at, bytes, how)).await;
        let mut ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
        ages.remove(at);
        done
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let fault = self.ask(Verb::Begin, at.as_ref());
        let upload = Self::request(fault, self.inner.put_multipart_opts(at, how)).await?;
        let store = self.clone();
        Ok(Box::new(Parts { upload, store }))
    }

    async fn get_opts(&self, at: &Path, how: GetOptions) -> Result<GetResult> {
        let verb = if how.head { Verb::Head } else { Verb::Get };
        let fault = self.ask(verb, at.as_ref());
        let mut answer = Self::request(fault, self.inner.get_opts(at, how)).await?;
        answer.meta = self.aged(answer.meta);
        match fault {
            Fault::WrongBit | Fault::Cut | Fault::Broken => spoilt(answer, fault).await,
            _ => Ok(answer),
        }
    }

    fn delete_stream(
        &self,
        all: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        match self.ask(Verb::Delete, "") {
            Fault::None | Fault::Late(_) => self.inner.delete_stream(all),
            Fault::Denied => stream::iter([Err(denied())]).boxed(),
            Fault::Unavailable => stream::iter([Err(unavailable())]).boxed(),
            // Only the first few are deleted.
            _ => {
                let some = self.inner.delete_stream(all.take(2).boxed());
                some.chain(stream::iter([Err(unavailable())])).boxed()
            }
        }
    }

    fn list(&self, below: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.ask(Verb::List, below.map_or("", AsRef::as_ref)) {
            Fault::None | Fault::Late(_) => {
                let store = self.clone();
                let listed = self.inner.list(below);
                listed
                    .map(move |meta| meta.map(|meta| store.aged(meta)))
                    .boxed()
            }
            Fault::Denied => stream::iter([Err(denied())]).boxed(),
            _ => stream::iter([Err(unavailable())]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, below: Option<&Path>) -> Result<ListResult> {
        let fault = self.ask(Verb::List, below.map_or("", AsRef::as_ref));
        Self::request(fault, self.inner.list_with_delimiter(below)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        let fault = self.ask(Verb::Put, to.as_ref());
        Self::request(fault, self.inner.copy_opts(from, to, how)).await
    }
}

#[derive(Debug)]
struct Parts {
    upload: Box<dyn MultipartUpload>,
    store: FaultyStore,
}

#[async_trait]
impl MultipartUpload for Parts {
    fn put_part(&mut self, bytes: PutPayload) -> UploadPart {
        let fault = self.store.ask(Verb::Part, "");
        let part = self.upload.put_part(bytes);
        Box::pin(FaultyStore::request(fault, part))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let fault = self.store.ask(Verb::Complete, "");
        FaultyStore::request(fault, self.upload.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        let fault = self.store.ask(Verb::Abort, "");
        FaultyStore::request(fault, self.upload.abort()).await
    }
}
