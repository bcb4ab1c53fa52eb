//! `latewood export parquet`: the answer of a server's `/api/v1/export`, as it comes, into a file.
//!
//! Until it is whole, the file has another name. Tested by `crates/server/tests/migrate/parquet.rs`.

use crate::args::{ParquetExport, TargetLogin};
use crate::error::{Doing, Result};
use crate::http::Http;
use crate::outcome::Outcome;
use crate::output;
use crate::progress::Progress;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

const CONTENT_TYPE: &str = "application/vnd.apache.parquet";

/// Writes the samples of all series that match.
///
/// # Errors
/// When the server cannot be read or refuses, or the file cannot be written.
pub(crate) fn run(options: &ParquetExport) -> Result<Outcome> {
    let login = TargetLogin {
        to_user: options.login.user.clone(),
        to_password: options.login.password.clone(),
    };
    let mut http = Http::new(&options.from, "/api/v1/export", &login, &options.tls)?;
    {
        let mut query = http.url().query_pairs_mut();
        query.append_pair("format", "parquet");
        for selector in &options.selectors {
            query.append_pair("match[]", selector);
        }
        for (name, ms) in [("start", options.start), ("end", options.end)] {
            if let Some(ms) = ms {
                query.append_pair(name, &seconds(ms));
            }
        }
    }
    let is_file = options.file != Path::new("-");
    let partial = options.file.with_added_extension("partial");
    let mut out: Box<dyn Write> = if is_file {
        output::require_new(&options.file)?;
        let made = File::create(&partial);
        Box::new(made.doing(format!("create {}", partial.display()))?)
    } else {
        output::open(&options.file)?
    };
    let mut progress = Progress::of_bytes("exporting", None);
    let name = options.file.display().to_string();
    let mut bytes = 0;
    let written = http.get(CONTENT_TYPE, &mut out, &name, &mut |piece| {
        bytes += piece;
        progress.add(piece);
    });
    progress.finish();
    if let Err(error) = written {
        if is_file {
            // The error that stopped it says more.
            let _ = fs::remove_file(&partial);
        }
        return Err(match bytes {
            0 => http.explained(error),
            _ => error,
        });
    }
    if is_file {
        fs::rename(&partial, &options.file).doing(format!("rename {}", partial.display()))?;
    }
    eprintln!("{bytes} bytes exported");
    Ok(Outcome::Complete)
}

/// Milliseconds in seconds, exactly.
fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        assert_eq!(seconds(1_700_000_000_001), "1700000000.001");
        assert_eq!(seconds(20), "0.020");
    }
}
