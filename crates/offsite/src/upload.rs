//! Uploads a database at rest to an object store.
//!
//! The place must be empty. `BACKUP.unfinished` is created first, exclusively, so
//! that two uploads to one place cannot both start. Then the files, FORMAT last,
//! then `BACKUP.json`. An interrupted upload has no `BACKUP.json`.

use crate::error::{Error, Result};
use crate::listing::{Entry, LISTING, Listing};
use crate::place::Place;
use crate::send::send_file;
use crate::transfer::{FILES_AT_ONCE, Moved, run};
use futures_util::{StreamExt, TryStreamExt, stream};
use latewood_engine::io::Env;
use latewood_engine::tools::{FORMAT, files_of};
use object_store::{ObjectStoreExt, PutMode, PutPayload};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The object that marks a running upload.
pub const UNFINISHED: &str = "BACKUP.unfinished";

/// Uploads the database in `dir`, which must not change meanwhile, to an empty
/// place. Uses about twelve parts of 8 MiB of memory.
///
/// # Errors
/// `Taken`, `Url` for a place that cannot be written, `File`, `Store`. Objects
/// uploaded so far stay, but are not a backup.
pub fn upload(dir: &Path, place: &Place) -> Result<Moved> {
    run(upload_all(dir, place))
}

async fn upload_all(dir: &Path, place: &Place) -> Result<Moved> {
    place.require_writable()?;
    refuse_taken(place).await?;
    create(place, UNFINISHED, Vec::new()).await?;
    let env = Env::real();
    let mut names = files_of(&env, dir)?;
    // Uploaded last: a folder without it is not a database.
    let last: Vec<String> = names.extract_if(.., |name| name == FORMAT).collect();
    let mut files = Vec::with_capacity(names.len() + last.len());
    for names in [names, last] {
        let sent: Vec<Entry> = stream::iter(names)
            .map(|name| upload_file(&env, dir, place, name))
            .buffer_unordered(FILES_AT_ONCE)
            .try_collect()
            .await?;
        files.extend(sent);
    }
    let moved = Moved {
        files: files.len() as u64,
        bytes: files.iter().map(|file| file.content.bytes).sum(),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.map_or(0, |now| now.as_millis() as u64);
    create(place, LISTING, Listing::new(files, now_ms).encode()).await?;
    let marker = place.store.delete(&place.object(UNFINISHED)).await;
    marker.map_err(Error::store(format!(
        "remove {} (the backup is finished)",
        place.call(UNFINISHED)
    )))?;
    Ok(moved)
}

async fn refuse_taken(place: &Place) -> Result<()> {
    let listed = place.store.list(place.prefix()).next().await;
    let failed = Error::store(format!(
        "list {} (keys and settings come from the environment)",
        place.url
    ));
    match listed.transpose().map_err(failed)? {
        None => Ok(()),
        Some(object) => Err(taken(place, object.location.as_ref())),
    }
}

fn taken(place: &Place, held: &str) -> Error {
    Error::Taken {
        url: place.url.clone(),
        held: held.to_owned(),
    }
}

/// Creates an object that must not exist.
async fn create(place: &Place, name: &str, bytes: Vec<u8>) -> Result<()> {
    let payload = PutPayload::from(bytes);
    let object = place.object(name);
    let put = place
        .store
        .put_opts(&object, payload, PutMode::Create.into());
    match put.await {
        Ok(_) => Ok(()),
        Err(object_store::Error::AlreadyExists { .. }) => Err(taken(place, name)),
        Err(error) => Err(Error::store(format!("write {}", place.call(name)))(error)),
    }
}

async fn upload_file(env: &Env, dir: &Path, place: &Place, name: String) -> Result<Entry> {
    let content = send_file(env, &dir.join(&name), place, &name).await?;
    Ok(Entry {
        path: name,
        content,
    })
}
