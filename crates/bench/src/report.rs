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
mod mixed;
mod new;
mod query;
mod recover;
mod size;
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

/// Writes `NAME.md` and its charts into `dir`, and prints the page.
///
/// # Errors
/// When the folder cannot be written.
pub(crate) fn write(measurement: &Measurement, dir: &Path, name: &str) -> Result<()> {
    std::fs::create_dir_all(dir).doing(format!("make {}", dir.display()))?;
    let page = match measurement {
        Measurement::Late(report) => {
            let charts = late::charts(report, name);
            for chart in &charts {
                let path = dir.join(&chart.file);
                let svg = chart::draw(chart)?;
                std::fs::write(&path, svg).doing(format!("write {}", path.display()))?;
            }
            late::page(report, name, &charts)
        }
        Measurement::Durable(report) => durable::page(report, name),
        Measurement::Recover(report) => recover::page(report, name),
        Measurement::Query(report) => query::page(report, name),
        Measurement::InProcess(report) => inprocess::page(report, name),
        Measurement::New(report) => new::page(report, name),
        Measurement::Wear(report) => wear::page(report, name),
        Measurement::Mixed(report) => mixed::page(report, name),
        Measurement::Size(report) => size::page(report, name),
        Measurement::Fleet(report) => {
            for (file, svg) in fleet::charts(report, name)? {
                let path = dir.join(&file);
                std::fs::write(&path, svg).doing(format!("write {}", path.display()))?;
            }
            fleet::page(report, name)
        }
    };
    let path = dir.join(format!("{name}.md"));
    std::fs::write(&path, &page).doing(format!("write {}", path.display()))?;
    println!("{page}");
    eprintln!("written: {}", path.display());
    Ok(())
}
