//! Pages as text: what `pages/*.txt` mean.
//!
//! The first line is the title, lines that begin with `-` are facts for the head, and blocks with
//! blank lines between them are the parts of the page:
//!
//! - `let LIST`, a line `field | of | value=template; *=template` for each field added to the runs
//!   of a list, or to the `report`: by the value at `of`, else `*`. Without templates it is that
//!   value, or the one of the report.
//! - `table LIST by KEY... [across KEY] [base KEY=VALUE] [needs EXPRESSION]`, a line
//!   `head | show | of` for each column ([`super::table`]). Paragraphs that begin with `?` go with
//!   the next table: they are left out where it is empty.
//! - `each LIST by KEY...` up to `end`: its parts for every group of runs, templates filled with
//!   the first.
//! - `charts EXPRESSION`, a line `file | title | axis | of` for each chart against that share.
//! - `timeline LIST SECONDS [KEY]`, a line `file | title | name`, and a line `axis | kind | of` for
//!   each panel: a list of the report, or of the run of median time of each group.
//! - `rules`: what compaction rules left.
//! - Anything else is a paragraph, a template ([`super::raw::fill`]).
//!
//! A page that breaks these rules panics: a test reads all of them.

use super::table::{Column, Table};

/// A page.
pub(crate) struct Source {
    pub(crate) title: &'static str,
    pub(crate) facts: Vec<String>,
    pub(crate) lets: Vec<(&'static str, Vec<[&'static str; 3]>)>,
    pub(crate) parts: Vec<Part>,
}

/// A part of a page.
pub(crate) enum Part {
    Words(String),
    Table(Table),
    Each(&'static str, Vec<&'static str>, Vec<Part>),
    /// Files, titles, axes and expressions of charts against a share.
    Charts(&'static str, Vec<[&'static str; 4]>),
    /// List, seconds and key; file, title and name; and panels.
    Timeline(Vec<&'static str>, Vec<[&'static str; 3]>),
    Rules,
}

/// Reads a page.
pub(crate) fn read(text: &'static str) -> Source {
    let mut blocks = text.trim_end().split("\n\n");
    let head = blocks.next().unwrap_or_default();
    let (title, facts) = head.split_once("\n- ").unwrap_or((head, ""));
    let facts = facts.split("\n- ").filter(|fact| !fact.is_empty());
    let (lets, blocks): (Vec<_>, Vec<_>) = blocks.partition(|block| block.starts_with("let "));
    let fields = |block: &&'static str| {
        let (list, fields) = block["let ".len()..].split_once('\n')?;
        Some((list, fields.lines().map(cells).collect()))
    };
    Source {
        title,
        facts: facts.map(unwrapped).collect(),
        lets: lets.iter().filter_map(fields).collect(),
        parts: parts(&mut blocks.into_iter()),
    }
}

fn parts(blocks: &mut std::vec::IntoIter<&'static str>) -> Vec<Part> {
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
            "each" => {
                let (list, by) = of.split_once(" by ").unwrap_or((of, ""));
                Part::Each(list, by.split(' ').collect(), self::parts(blocks))
            }
            "charts" => Part::Charts(of, rows.lines().map(cells).collect()),
            "timeline" => {
                Part::Timeline(of.split(' ').collect(), rows.lines().map(cells).collect())
            }
            "rules" => Part::Rules,
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
    let column = |row| {
        let [head, show, of] = cells(row);
        let (show, with) = show.split_once(' ').unwrap_or((show, ""));
        Column {
            head,
            show,
            with,
            of,
        }
    };
    let mut table = Table {
        of: words.next().unwrap_or_default(),
        needs: "1",
        titles,
        by: Vec::new(),
        across: None,
        base: None,
        columns: rows.lines().map(column).collect(),
    };
    let mut word = "";
    for next in words {
        match word {
            "base" => table.base = next.split_once('='),
            "across" => table.across = Some(next),
            "needs" => table.needs = next,
            _ if !["by", "across", "base", "needs"].contains(&next) => table.by.push(next),
            _ => {}
        }
        word = next;
    }
    table
}
