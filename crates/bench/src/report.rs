//! From a file of raw runs to pages people read: a Markdown page with tables, and SVG charts.
//!
//! Pages are generated and never edited, so that a page can always be made again from its runs:
//! `latewood-bench report FILE.json --out DIR`.

pub(crate) mod json;

mod chart;
mod durable;
mod fleet;
mod inprocess;
mod late;
mod lines;
mod mixed;
mod new;
mod query;
mod recover;
mod size;
mod stages;
mod statistics;
mod timeline;
mod wear;

use std::path::{Path, PathBuf};

use clap::Args;

use self::json::Measurement;
pub(crate) use self::statistics::thousands;
use crate::error::{Doing, Result};

/// Make the page and the charts of a measurement again from its raw runs.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Raw runs, as written by --json
    file: PathBuf,
    /// Folder for the page and the charts
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// Runs the subcommand.
///
/// # Errors
/// When the file is no measurement or the folder cannot be written.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    let measurement = json::read(&args.file)?;
    let name = args.file.file_stem().unwrap_or_default().to_string_lossy();
    write(&measurement, &args.out, &name)
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
        Measurement::Fleet(report) => (fleet::page(report, name), fleet::charts(report, name)?),
        Measurement::Durable(report) => (durable::page(report, name), Vec::new()),
        Measurement::Recover(report) => (recover::page(report, name), Vec::new()),
        Measurement::Query(report) => (query::page(report, name), Vec::new()),
        Measurement::InProcess(report) => (inprocess::page(report, name), Vec::new()),
        Measurement::New(report) => (new::page(report, name), Vec::new()),
        Measurement::Wear(report) => (wear::page(report, name), Vec::new()),
        Measurement::Mixed(report) => (mixed::page(report, name), Vec::new()),
        Measurement::Stages(report) => (stages::page(report, name), Vec::new()),
        Measurement::Size(report) => (size::page(report, name), Vec::new()),
    };
    Ok(Page { text, charts })
}
