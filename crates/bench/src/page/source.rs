//! Pages as text: what `pages/*.txt` mean.
//!
//! The first line is the title, lines that begin with `-` are facts for the head, and blocks with
//! blank lines between them are the parts of the page:
//!
//! - `table LIST by KEY... [base KEY=VALUE] [needs EXPRESSION]`, a line `head | show | of` for each
//!   column ([`super::table`]). Paragraphs that begin with `?` go with the next table: they are left
//!   out where it is empty.
//! - `each KEY...` up to `end`: its parts for every group of runs, templates filled with the first.
//! - `charts EXPRESSION`, a line `file | title | axis | of` for each chart against that share.
//! - `made NAME` and `drawn NAME`: what a function of this name makes.
//! - Anything else is a paragraph, a template ([`super::raw::fill`]).
//!
//! A page that breaks these rules panics: a test reads all of them.

use super::table::{Column, Show, Table};

/// A page.
pub(crate) struct Source {
    pub(crate) title: &'static str,
    pub(crate) facts: Vec<String>,
    pub(crate) parts: Vec<Part>,
}

/// A part of a page.
pub(crate) enum Part {
    Words(String),
    Table(Table),
    Each(Vec<&'static str>, Vec<Part>),
    /// Files, titles, axes and expressions of charts against a share.
    Charts(&'static str, Vec<[&'static str; 4]>),
    Made(&'static str),
    Drawn(&'static str),
}

/// Reads a page.
pub(crate) fn read(text: &'static str) -> Source {
    let mut blocks = text.trim_end().split("\n\n");
    let head = blocks.next().unwrap_or_default();
    let (title, facts) = head.split_once("\n- ").unwrap_or((head, ""));
    let facts = facts.split("\n- ").filter(|fact| !fact.is_empty());
    Source {
        title,
        facts: facts.map(unwrapped).collect(),
        parts: parts(&mut blocks),
    }
}

fn parts(blocks: &mut std::str::Split<'static, &str>) -> Vec<Part> {
    let (mut parts, mut titles) = (Vec::new(), Vec::new());
    while let Some(block) = blocks.next() {
        let (first, rows) = block.split_once('\n').unwrap_or((block, ""));
        let (kind, of) = first.split_once(' ').unwrap_or((first, ""));
        parts.push(match kind {
            "end" => return parts,
            "?" => {
                titles.push(unwrapped(block.trim_start_matches("? ")));
                continue;
            }
            "table" => Part::Table(table(of, rows, std::mem::take(&mut titles))),
            "each" => Part::Each(of.split(' ').collect(), self::parts(blocks)),
            "charts" => Part::Charts(of, rows.lines().map(cells).collect()),
            "made" => Part::Made(of),
            "drawn" => Part::Drawn(of),
            _ => Part::Words(unwrapped(block)),
        });
    }
    parts
}

fn unwrapped(block: &str) -> String {
    block.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn cells<const N: usize>(row: &'static str) -> [&'static str; N] {
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    cells
        .try_into()
        .unwrap_or_else(|_| panic!("{row}: {N} cells"))
}

fn table(of: &'static str, rows: &'static str, titles: Vec<String>) -> Table {
    let mut words = of.split(' ');
    let mut table = Table {
        of: words.next().unwrap_or_default(),
        needs: "1",
        titles,
        by: Vec::new(),
        base: None,
        columns: rows.lines().map(|row| column(cells(row))).collect(),
    };
    let mut word = "";
    for next in words {
        match word {
            "base" => table.base = next.split_once('='),
            "needs" => table.needs = next,
            _ if !["by", "base", "needs"].contains(&next) => table.by.push(next),
            _ => {}
        }
        word = next;
    }
    table
}

fn column([head, show, of]: [&'static str; 3]) -> Column {
    let (kind, with) = show.split_once(' ').unwrap_or((show, ""));
    let places = || {
        with.parse()
            .unwrap_or_else(|_| panic!("{show}: no number of digits"))
    };
    let show = match kind {
        "text" => Show::Text,
        "label" => Show::Label,
        "named" => Show::Named(
            with.split("; ")
                .filter_map(|name| name.split_once('='))
                .collect(),
        ),
        "count" => Show::Count,
        "range" => Show::Range,
        "fixed" => Show::Fixed(places()),
        "pair" => Show::Pair(with),
        "ratio" => Show::Ratio(with),
        "largest" => Show::Largest,
        "digits" => Show::Digits,
        "digits-range" => Show::DigitsRange,
        "lost" => Show::Lost,
        "share" => Show::Share,
        "times" => Show::Times(places()),
        "speedup" => Show::Speedup,
        "extra" => Show::Extra(with),
        _ => panic!("{show}: unknown way to show {head}"),
    };
    Column(head, show, of)
}
