//! A store in memory that answers so many requests and then none.

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The store; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Fragile {
    pub(crate) inner: Arc<InMemory>,
    left: Arc<AtomicU64>,
    pub(crate) asked: Arc<AtomicU64>,
}

impl Fragile {
    pub(crate) fn new(inner: Arc<InMemory>, answers: u64) -> Self {
        Self {
            inner,
            left: Arc::new(AtomicU64::new(answers)),
            asked: Arc::default(),
        }
    }

    fn ask(&self) -> Result<()> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let take = |left: u64| left.checked_sub(1);
        let order = Ordering::Relaxed;
        match self.left.fetch_update(order, order, take) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Generic {
                store: "fragile",
                source: "the connection is gone".into(),
            }),
        }
    }
}

impl std::fmt::Display for Fragile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("fragile")
    }
}

#[async_trait]
impl ObjectStore for Fragile {
    async fn put_opts(&self, at: &Path, bytes: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.ask()?;
        self.inner.put_opts(at, bytes, how).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.ask()?;
        let upload = self.inner.put_multipart_opts(at, how).await?;
        let store = self.clone();
        Ok(Box::new(Parts { upload, store }))
    }

    async fn get_opts(&self, at: &Path, how: GetOptions) -> Result<GetResult> {
        self.ask()?;
        self.inner.get_opts(at, how).await
    }

    fn delete_stream(
        &self,
        all: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        match self.ask() {
            Ok(()) => self.inner.delete_stream(all),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    fn list(&self, below: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.ask() {
            Ok(()) => self.inner.list(below),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, below: Option<&Path>) -> Result<ListResult> {
        self.ask()?;
        self.inner.list_with_delimiter(below).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        self.ask()?;
        self.inner.copy_opts(from, to, how).await
    }
}

#[derive(Debug)]
struct Parts {
    upload: Box<dyn MultipartUpload>,
    store: Fragile,
}

#[async_trait]
impl MultipartUpload for Parts {
    fn put_part(&mut self, bytes: PutPayload) -> UploadPart {
        match self.store.ask() {
            Ok(()) => self.upload.put_part(bytes),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.store.ask()?;
        self.upload.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.store.ask()?;
        self.upload.abort().await
    }
}
