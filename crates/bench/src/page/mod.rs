//! From a file of raw runs to pages people read: a Markdown page with tables, and SVG charts.
//!
//! Pages are generated and never edited, so that a page can always be made again from its runs:
//! `latewood-bench report FILE.json --out DIR`, or all of them: `latewood-bench report --all`.
//! Every page is a text in `pages/` ([`source`]) filled from JSON by path; nothing here measures. Invariant:
//! committed files stay readable. Tested by making every committed page again.

pub(crate) mod catalog;
pub(crate) mod raw;
pub(crate) mod sheet;

mod chart;
mod html;
mod index;
mod prepare;
mod source;
mod stages;
mod table;
mod targets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use self::index::Reports;
use self::sheet::{Drawing, Page};
pub(crate) use self::table::digits;
use crate::base::error::{Doing, Error, Result};

/// The page of each family, and what is added to its raw runs.
macro_rules! pages {
    ($($family:literal => $prepare:expr,)*) => {
        &[$(Page {
            family: $family,
            text: include_str!(concat!("pages/", $family, ".txt")),
            prepare: $prepare,
        }),*]
    };
}

const PAGES: &[Page] = pages! {
    "late" => prepare::late,
    "lines" => |_| (),
    "senders" => |_| (),
    "durable" => |_| (),
    "query" => |_| (),
    "promql" => |_| (),
    "size" => prepare::size,
    "inprocess" => prepare::inprocess,
    "new" => |_| (),
    "stages" => stages::prepare,
    "fleet" => |_| (),
    "wear" => |_| (),
    "recover" => |_| (),
    "remote" => |_| (),
    "mixed" => prepare::mixed,
    "soak" => prepare::soak,
};

/// Make the page and the charts of a measurement again from its raw runs, or all of a folder.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct ReportArgs {
    /// Raw runs, as written by --json
    #[arg(group = "what")]
    file: Option<PathBuf>,
    /// Every page of the raw runs in this folder, README.md over all of them, and report.html
    /// with everything in it
    #[arg(long, group = "what", value_name = "DIR", num_args = 0..=1,
        default_missing_value = "docs/benchmarks")]
    all: Option<PathBuf>,
    /// Folder for the page and the charts of one file
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// Runs the subcommand.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    if let Some(dir) = &args.all {
        return write_all(dir);
    }
    let file = args.file.as_deref().unwrap_or(Path::new("."));
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    write(&read(file)?, &args.out, &name)
}

/// Reads raw runs.
pub(crate) fn read(path: &Path) -> Result<Value> {
    let doing = format!("read {}", path.display());
    let text = std::fs::read_to_string(path).doing(&doing)?;
    serde_json::from_str(&text).doing(&doing)
}

/// Draws the page of raw runs that bear `name`.
pub(crate) fn draw(report: &Value, name: &str) -> Result<Drawing> {
    let family = raw::text(report, "family");
    let page = PAGES.iter().find(|page| page.family == family);
    let page = page.ok_or_else(|| Error::new(format!("{name}: unknown family {family:?}")))?;
    page.draw(report, name)
}

/// Writes `NAME.md` and its charts into `dir`, and prints the page.
pub(crate) fn write(report: &Value, dir: &Path, name: &str) -> Result<()> {
    let page = draw(report, name)?;
    println!("{}", page.text);
    let text = [(format!("{name}.md"), page.text)];
    write_files(dir, page.charts.into_iter().chain(text))
}

/// Makes all pages of the raw runs in `dir` again, and those over all of them.
pub(crate) fn write_all(dir: &Path) -> Result<()> {
    write_files(dir, files(dir)?)
}

fn write_files(dir: &Path, files: impl IntoIterator<Item = (String, String)>) -> Result<()> {
    std::fs::create_dir_all(dir).doing(format!("make {}", dir.display()))?;
    for (file, text) in files {
        let path = dir.join(file);
        std::fs::write(&path, text).doing(format!("write {}", path.display()))?;
        eprintln!("written: {}", path.display());
    }
    Ok(())
}

/// Names and contents of all that follows from the raw runs in `dir`.
fn files(dir: &Path) -> Result<BTreeMap<String, String>> {
    let doing = format!("list {}", dir.display());
    let mut reports = Reports::new();
    for entry in std::fs::read_dir(dir).doing(&doing)? {
        let path = entry.doing(&doing)?.path();
        if path.extension().is_some_and(|end| end == "json") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            reports.insert(name.to_string(), draw(&read(&path)?, &name)?);
        }
    }
    let index = index::page(&reports)?;
    let html = html::page(&index, &reports);
    let mut files = BTreeMap::from([("README.md".to_owned(), index)]);
    files.insert("report.html".to_owned(), html);
    for (name, report) in reports {
        files.insert(format!("{name}.md"), report.text);
        files.extend(report.charts);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_pages_follow_from_the_committed_runs() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks");
        let made = files(&dir).unwrap();
        assert!(made.len() > 2);
        for (name, text) in &made {
            let committed = std::fs::read_to_string(dir.join(name)).unwrap_or_default();
            let again = "run `latewood-bench report --all`";
            assert!(
                committed == *text,
                "{name} is not what its runs say: {again}"
            );
        }
        for entry in std::fs::read_dir(&dir).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_raw = name.ends_with(".json");
            assert!(is_raw || made.contains_key(&name), "{name} has no runs");
        }
    }
}
