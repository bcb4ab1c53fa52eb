//! Copies of a database must be outside of its directory: the disk budget does
//! not count them, and losing the directory would lose the copy.

use std::path::{Path, PathBuf};

/// Refuses a place for a copy that lies in the directory `dir` of a database,
/// by whichever links it is reached.
///
/// # Errors
/// Says where it lies.
pub(crate) fn require_outside(dir: &Path, to: &Path) -> Result<(), String> {
    let held = dir.canonicalize().ok();
    // What is not there yet will be made in the nearest folder that is.
    let place: Option<PathBuf> = to.ancestors().find_map(|path| path.canonicalize().ok());
    match held.zip(place) {
        Some((held, place)) if place.starts_with(&held) => Err(format!(
            "{} lies inside the data directory {}: a copy needs a place outside of it",
            to.display(),
            dir.display()
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_where_a_place_is() {
        let home = tempfile::tempdir().unwrap();
        let (data, link) = (home.path().join("data"), home.path().join("link"));
        std::fs::create_dir_all(data.join("deep")).unwrap();
        std::os::unix::fs::symlink(data.join("deep"), &link).unwrap();
        for inside in [
            data.clone(),
            data.join("new"),
            data.join("deep/new/newer"),
            link.join("new"),
            home.path().join("link/../new"),
        ] {
            let refused = require_outside(&data, &inside);
            assert!(refused.is_err(), "{}", inside.display());
        }
        for outside in ["data2", "new/newer", "data/../new"] {
            let outside = home.path().join(outside);
            assert_eq!(require_outside(&data, &outside), Ok(()));
        }
    }
}
