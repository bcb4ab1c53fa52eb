//! The names of the objects of a tablet, below its folder.
//!
//! ```text
//! LATEST                                                     a hint
//! PROBE                                                      nothing of use
//! EPOCH/CHECKPOINT-NUMBER.DIGEST                             a listing
//! EPOCH/MANIFEST-NUMBER.DIGEST                               also FORMAT, METADATA
//! EPOCH/blocks/block-0000000000000001.blk.DIGEST             also series/
//! ```
//! EPOCH and NUMBER are 16 hexadecimal digits, DIGEST the first 16 of the SHA-256.

use latewood_offsite::Content;

/// The object that is replaced.
pub(super) const LATEST: &str = "LATEST";
/// Written at each start, to find out whether the store can be written.
pub(super) const PROBE: &str = "PROBE";
/// What listings are called.
const LISTING: &str = "CHECKPOINT";
/// Digits of an epoch, a number and a digest.
const DIGITS: usize = 16;

/// The object of the file `path` of a database, saved in checkpoint `number`.
pub(super) fn file(epoch: u64, number: u64, path: &str, content: &Content) -> String {
    let digest = digest(content);
    if path.contains('/') {
        return format!("{epoch:016x}/{path}.{digest}");
    }
    format!("{epoch:016x}/{path}-{number:016x}.{digest}")
}

pub(super) fn listing(epoch: u64, number: u64, content: &Content) -> String {
    file(epoch, number, LISTING, content)
}

fn digest(content: &Content) -> &str {
    content.sha256.get(..DIGITS).unwrap_or(&content.sha256)
}

/// The epoch in the name of an object; `None` where it is no name from here.
pub(super) fn epoch(object: &str) -> Option<u64> {
    let (epoch, rest) = object.split_once('/')?;
    let of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_name = |part: &str| part.bytes().all(of_names) && part.bytes().any(|byte| byte != b'.');
    let number = u64::from_str_radix(epoch, 16).ok()?;
    (format!("{number:016x}") == epoch && rest.split('/').all(is_name)).then_some(number)
}

/// Whether an object may be a listing. Names of listings are in the order of their epochs and
/// numbers.
pub(super) fn is_listing(object: &str) -> bool {
    let name = object.split_once('/').map_or("", |(_, name)| name);
    let is_named = name
        .strip_prefix(LISTING)
        .is_some_and(|rest| rest.starts_with('-'));
    is_named && epoch(object).is_some()
}

/// Whether a listing may be the first that the owner of an epoch saved: a log that was new to it.
pub(super) fn is_first_listing(object: &str) -> bool {
    let rest = object
        .split_once("/CHECKPOINT-")
        .map_or("", |(_, rest)| rest);
    rest.starts_with("0000000000000001.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_epoch_number_and_digest() {
        let content = Content::of(b"abc");
        for (name, wanted) in [
            (
                file(255, 3, "blocks/block-0000000000000001.blk", &content),
                "00000000000000ff/blocks/block-0000000000000001.blk.ba7816bf8f01cfea",
            ),
            (
                file(255, 3, "MANIFEST", &content),
                "00000000000000ff/MANIFEST-0000000000000003.ba7816bf8f01cfea",
            ),
            (
                listing(255, 3, &content),
                "00000000000000ff/CHECKPOINT-0000000000000003.ba7816bf8f01cfea",
            ),
        ] {
            assert_eq!(name, wanted);
            assert_eq!(epoch(&name), Some(255));
            assert_eq!(is_listing(&name), name.contains("CHECKPOINT"));
        }
    }

    #[test]
    fn other_names_have_no_epoch() {
        for name in [
            "",
            LATEST,
            "00000000000000ff",
            "00000000000000ff/",
            "00000000000000FF/FORMAT",
            "ff/FORMAT",
            "00000000000000ff/../FORMAT",
            "00000000000000ff//FORMAT",
            "00000000000000ff/a b",
        ] {
            assert_eq!(epoch(name), None, "{name}");
            assert!(!is_listing(name));
        }
    }
}
