//! From a file of raw runs to pages people read: a Markdown page with tables, and SVG charts.
//!
//! Pages are generated and never edited, so that a page can always be made again from its runs:
//! `latewood-bench report FILE.json --out DIR`, or all of them: `latewood-bench report --all`.

pub(crate) mod json;

mod chart;
mod durable;
mod fleet;
mod html;
mod index;
mod inprocess;
mod late;
mod lines;
mod mixed;
mod new;
mod query;
mod recover;
mod senders;
mod size;
mod soak;
mod stages;
mod statistics;
mod targets;
mod timeline;
mod wear;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;

use self::json::Measurement;
pub(crate) use self::statistics::thousands;
use crate::error::{Doing, Result};

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
///
/// # Errors
/// When the file is no measurement or the folder cannot be written.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    if let Some(dir) = &args.all {
        return write_all(dir);
    }
    let file = args.file.as_deref().unwrap_or(Path::new("."));
    let measurement = json::read(file)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    write(&measurement, &args.out, &name)
}

/// Makes all pages of the raw runs in `dir` again, and those over all of them.
///
/// # Errors
/// When a file is no measurement or the folder cannot be read or written.
pub(crate) fn write_all(dir: &Path) -> Result<()> {
    for (file, text) in files(dir)? {
        let path = dir.join(file);
        std::fs::write(&path, text).doing(format!("write {}", path.display()))?;
        eprintln!("written: {}", path.display());
    }
    Ok(())
}

/// Sentences a reader must not miss, as items of a page's head.
fn notes(sentences: &[String]) -> String {
    let items = sentences.iter().map(|text| format!("- **{text}**\n"));
    items.collect()
}

/// Names and contents of all that follows from the raw runs in `dir`.
fn files(dir: &Path) -> Result<BTreeMap<String, String>> {
    let doing = format!("list {}", dir.display());
    let mut reports = index::Reports::new();
    for entry in std::fs::read_dir(dir).doing(&doing)? {
        let path = entry.doing(&doing)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let measurement = json::read(&path)?;
            let page = page(&measurement, &name)?;
            reports.insert(name.into_owned(), (measurement, page));
        }
    }
    let index = index::page(&reports);
    let html = html::page(&index, &reports);
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for (name, (_, page)) in reports {
        files.insert(format!("{name}.md"), page.text);
        files.extend(page.charts);
    }
    files.insert("README.md".to_owned(), index);
    files.insert("report.html".to_owned(), html);
    Ok(files)
}

/// A page and the charts it shows.
#[derive(Debug)]
struct Page {
    /// Markdown.
    text: String,
    /// Names of files, and their drawings.
    charts: Vec<(String, String)>,
}

/// Writes `NAME.md` and its charts into `dir`, and prints the page.
///
/// # Errors
/// When the folder cannot be written.
pub(crate) fn write(measurement: &Measurement, dir: &Path, name: &str) -> Result<()> {
    std::fs::create_dir_all(dir).doing(format!("make {}", dir.display()))?;
    let page = page(measurement, name)?;
    for (file, svg) in &page.charts {
        let path = dir.join(file);
        std::fs::write(&path, svg).doing(format!("write {}", path.display()))?;
    }
    let path = dir.join(format!("{name}.md"));
    std::fs::write(&path, &page.text).doing(format!("write {}", path.display()))?;
    println!("{}", page.text);
    eprintln!("written: {}", path.display());
    Ok(())
}

/// The text of that page.
///
/// # Errors
/// When the drawing library fails.
pub(crate) fn text(measurement: &Measurement, name: &str) -> Result<String> {
    Ok(page(measurement, name)?.text)
}

/// The page of a measurement that bears `name`.
///
/// # Errors
/// When the drawing library fails.
fn page(measurement: &Measurement, name: &str) -> Result<Page> {
    let (text, charts) = match measurement {
        Measurement::Late(report) => {
            let charts = late::charts(report, name);
            (late::page(report, name, &charts), chart::draw_all(&charts)?)
        }
        Measurement::Lines(report) => {
            let charts = lines::charts(report, name);
            (
                lines::page(report, name, &charts),
                chart::draw_all(&charts)?,
            )
        }
        Measurement::Senders(report) => (senders::page(report, name), Vec::new()),
        Measurement::Fleet(report) => (fleet::page(report, name), fleet::charts(report, name)?),
        Measurement::Durable(report) => (durable::page(report, name), Vec::new()),
        Measurement::Recover(report) => (recover::page(report, name), Vec::new()),
        Measurement::Query(report) => (query::page(report, name), Vec::new()),
        Measurement::InProcess(report) => (inprocess::page(report, name), Vec::new()),
        Measurement::New(report) => (new::page(report, name), Vec::new()),
        Measurement::Wear(report) => (wear::page(report, name), Vec::new()),
        Measurement::Mixed(report) => (mixed::page(report, name), Vec::new()),
        Measurement::Soak(report) => (soak::page(report, name), soak::charts(report, name)?),
        Measurement::Stages(report) => (stages::page(report, name), Vec::new()),
        Measurement::Size(report) => (size::page(report, name), Vec::new()),
    };
    Ok(Page { text, charts })
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
