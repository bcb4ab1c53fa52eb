//! Floors: imports lead down and form no circles.
//!
//! [`FLOORS`] lists the crates from top to bottom and the entries of each `src` folder from top to
//! bottom: a folder, with the file of the same name, or a file. Breaches are an import from a
//! lower entry to a higher one (this covers circles of entries), an entry that is not in the
//! table, a circle of folders inside an entry, and a circle of more than [`CIRCLE_FILES_MAX`]
//! files. Crates may depend only on those below them. Code built only for tests or fuzzing is
//! ignored.
//!
//! `cargo run -p xtask -- floors CRATE [ENTRY...]` prints the arrows between entries, those that
//! lead up in the given order or the table's, and every circle. To add a crate, find an order
//! without upward arrows and put it into the table.
//!
//! Everything is a function of paths and texts, tested below on small trees that break each rule.

mod arrows;
mod circles;
mod source;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use arrows::{Arrows, arrows};
use circles::circles;
pub(crate) use table::FLOORS;

/// Largest allowed circle of files.
const CIRCLE_FILES_MAX: usize = 5;

/// Every breach in these sources, by path, and manifests, by crate.
pub(crate) fn check(
    files: &BTreeMap<String, String>,
    manifests: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut breaches = check_manifests(&FLOORS.map(|(name, _)| name), manifests);
    for (name, order) in FLOORS.iter().filter(|(_, order)| !order.is_empty()) {
        breaches.extend(check_crate(files, &source_folder(name), order));
    }
    breaches
}

fn source_folder(name: &str) -> String {
    match name {
        "xtask" => "xtask/src/".to_owned(),
        name => format!("crates/{name}/src/"),
    }
}

/// Dependencies on crates above or outside the table.
fn check_manifests(order: &[&str], manifests: &BTreeMap<String, String>) -> Vec<String> {
    let mut breaches = Vec::new();
    let place = |name: &str| order.iter().position(|crate_| *crate_ == name);
    for (name, manifest) in manifests {
        let (_, section) = manifest.split_once("[dependencies]").unwrap_or_default();
        let lines = section.lines().take_while(|line| !line.starts_with('['));
        for to in lines.filter_map(|line| line.strip_prefix("latewood-")) {
            let to = to.split(['.', ' ', '=']).next().unwrap_or(to);
            if place(name).is_none_or(|from| place(to).is_none_or(|to| to <= from)) {
                breaches.push(format!(
                    "crates/{name}/Cargo.toml: depends on {to}, which is not on a lower floor"
                ));
            }
        }
    }
    breaches
}

/// The breaches of one crate.
fn check_crate(files: &BTreeMap<String, String>, src: &str, order: &[&str]) -> Vec<String> {
    let arrows = arrows(files, src);
    let inside = files.keys().filter_map(|file| file.strip_prefix(src));
    let entries: BTreeSet<&str> = inside.map(entry).collect();
    let unlisted = entries.iter().filter(|entry| !order.contains(entry));
    let unlisted = unlisted.map(|entry| format!("{src}{entry}: not in the table of floors"));
    let gone = order.iter().filter(|entry| !entries.contains(*entry));
    let gone = gone.map(|entry| format!("{src}{entry}: in the table of floors, but no such file"));
    unlisted
        .chain(gone)
        .chain(upward(&arrows, src, order))
        .chain(folder_circles(files, &arrows, src, false))
        .chain(file_circles(&arrows, CIRCLE_FILES_MAX + 1))
        .collect()
}

/// The entry of `src` that contains a file.
fn entry(file: &str) -> &str {
    let (first, _) = file.split_once('/').unwrap_or((file, ""));
    first.strip_suffix(".rs").unwrap_or(first)
}

/// Arrows from a lower entry to a higher one.
fn upward(arrows: &Arrows, src: &str, order: &[&str]) -> Vec<String> {
    let floor = |file: &str| {
        let entry = entry(&file[src.len()..]);
        order.iter().position(|name| *name == entry)
    };
    let up = arrows
        .iter()
        .filter(|((from, to), _)| match (floor(from), floor(to)) {
            (Some(from), Some(to)) => to < from,
            _ => false,
        });
    up.map(|((from, to), line)| format!("{from}:{line}: imports {to}, which is on a higher floor"))
        .collect()
}

/// Circles of `at_least` files, with the arrows that close them.
fn file_circles(arrows: &Arrows, at_least: usize) -> Vec<String> {
    let ends = arrows.keys().map(|(from, to)| (from.as_str(), to.as_str()));
    let mut circles = circles(ends);
    circles.retain(|circle| circle.len() >= at_least);
    let text = |circle: BTreeSet<&str>| {
        let mut text = format!("a circle of {} files:", circle.len());
        for ((from, to), line) in arrows {
            if circle.contains(from.as_str()) && circle.contains(to.as_str()) {
                text += &format!("\n  {from}:{line}: imports {to}");
            }
        }
        text
    };
    circles.into_iter().map(text).collect()
}

/// Circles of sibling folders, with the arrows that close them; those of `src` only with `entries`.
fn folder_circles(
    files: &BTreeMap<String, String>,
    arrows: &Arrows,
    src: &str,
    entries: bool,
) -> Vec<String> {
    let mut between: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for ((from, to), line) in arrows {
        let Some(ends) = folders_apart(&from[src.len()..], &to[src.len()..]) else {
            continue;
        };
        let [of, onto] = &ends;
        let is_folder = |name: &String| {
            let inside = format!("{src}{name}/");
            files.keys().any(|file| file.starts_with(&inside))
        };
        if is_folder(of) && is_folder(onto) && (entries || of.contains('/')) {
            let texts = between.entry(ends.into()).or_default();
            texts.push(format!("\n  {from}:{line}: imports {to}"));
        }
    }
    let circles = circles(
        between
            .keys()
            .map(|(of, onto)| (of.as_str(), onto.as_str())),
    );
    let text = |circle: BTreeSet<&str>| {
        let names: Vec<&str> = circle.iter().copied().collect();
        let inside = |(of, onto): &(String, String)| {
            circle.contains(of.as_str()) && circle.contains(onto.as_str())
        };
        let texts = between.iter().filter(|(ends, _)| inside(ends));
        let texts: String = texts.flat_map(|(_, texts)| texts.clone()).collect();
        format!("{src}: a circle of folders, {}:{texts}", names.join(", "))
    };
    circles.into_iter().map(text).collect()
}

/// The sibling folders or files that contain two files; `None` if one is in the folder of the
/// other.
fn folders_apart(from: &str, to: &str) -> Option<[String; 2]> {
    let [from, to] = [from, to].map(|file| file.trim_end_matches(".rs").trim_end_matches("/mod"));
    let mut end = 0;
    for (a, b) in from.split('/').zip(to.split('/')) {
        if a != b {
            return Some([from[..end].to_owned() + a, to[..end].to_owned() + b]);
        }
        end += a.len() + 1;
    }
    None
}

/// `-- floors CRATE [ENTRY...]`: the arrows between entries, and the breaches in the given order or
/// the table's.
pub(crate) fn show(files: &BTreeMap<String, String>, name: &str, order: &[&str]) -> String {
    let src = source_folder(name);
    let arrows = arrows(files, &src);
    let mut between: BTreeMap<[&str; 2], Vec<String>> = BTreeMap::new();
    for ((from, to), line) in &arrows {
        let ends = [from, to].map(|file| entry(&file[src.len()..]));
        if ends[0] != ends[1] {
            let texts = between.entry(ends).or_default();
            texts.push(format!(
                "{}:{line} {}",
                &from[src.len()..],
                &to[src.len()..]
            ));
        }
    }
    let mut text = String::new();
    for ([from, to], texts) in between {
        let examples = texts[..texts.len().min(3)].join(", ");
        text += &format!("{from} -> {to}: {} ({examples})\n", texts.len());
    }
    let mut listed = FLOORS.iter().filter(|(listed, _)| *listed == name);
    let order = match listed.next() {
        Some((_, table)) if order.is_empty() => table,
        _ => order,
    };
    let wrong = [
        upward(&arrows, &src, order),
        folder_circles(files, &arrows, &src, true),
        file_circles(&arrows, 2),
    ];
    for line in wrong.iter().flatten() {
        text += &format!("{line}\n");
    }
    let counts = wrong.map(|lines| lines.len());
    text + &format!(
        "{} arrows between files, {} up, {} circles of folders, {} of files",
        arrows.len(),
        counts[0],
        counts[1],
        counts[2]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRC: &str = "crates/x/src/";

    /// The breaches in the files of a crate, by their paths below `src`.
    fn wrong(files: &[(&str, &str)], order: &[&str]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| (format!("{SRC}{path}"), (*text).to_owned());
        check_crate(&files.iter().map(file).collect(), SRC, order)
    }

    const CLEAN: [(&str, &str); 5] = [
        ("lib.rs", "mod top; mod low; pub use low::Deep;"),
        ("top.rs", "use crate::{Deep, low::part::Part};"),
        ("low/mod.rs", "mod deep; pub mod part; pub use deep::*;"),
        ("low/deep.rs", "pub struct Deep; impl super::part::Part {}"),
        (
            "low/part.rs",
            "pub struct Part; #[cfg(test)] mod tests { use crate::top::T; }",
        ),
    ];

    #[test]
    fn a_clean_tree_passes_and_each_name_counts_where_it_is_defined() {
        assert_eq!(wrong(&CLEAN, &["lib", "top", "low"]), [""; 0]);
        let file = |(path, text): (&str, &str)| (format!("{SRC}{path}"), text.to_owned());
        let arrows = arrows(&CLEAN.map(file).into(), SRC);
        let short = |file: &String| file[SRC.len()..].to_owned();
        let arrows: Vec<_> = arrows
            .keys()
            .map(|(a, b)| short(a) + " " + &short(b))
            .collect();
        let expected = [
            "lib.rs low/deep.rs",
            "low/deep.rs low/part.rs",
            "low/mod.rs low/deep.rs",
            "top.rs low/deep.rs",
            "top.rs low/part.rs",
        ];
        assert_eq!(arrows, expected);
    }

    #[test]
    fn an_upward_import_fails_and_names_both_files() {
        let breach = "crates/x/src/top.rs:1: imports crates/x/src/low/deep.rs, \
                      which is on a higher floor";
        let breaches = wrong(&CLEAN, &["lib", "low", "top"]);
        assert_eq!(breaches.len(), 2);
        assert_eq!(breaches[0], breach);
        let inline = [
            ("lib.rs", "mod a; pub const N: u8 = 1;"),
            ("a.rs", "\nfn f() { crate::N }"),
        ];
        let breaches = wrong(&inline, &["lib", "a"]);
        let breach = "crates/x/src/a.rs:2: imports crates/x/src/lib.rs, which is on a higher floor";
        assert_eq!(breaches, [breach]);
    }

    #[test]
    fn entries_and_the_table_agree() {
        let breaches = wrong(&CLEAN, &["lib", "top", "gone"]);
        let unlisted = "crates/x/src/low: not in the table of floors";
        let gone = "crates/x/src/gone: in the table of floors, but no such file";
        assert_eq!(breaches, [unlisted, gone]);
    }

    #[test]
    fn a_circle_of_folders_fails() {
        let files = [
            ("lib.rs", "mod all;"),
            ("all.rs", "mod a; mod b;"),
            ("all/a.rs", "mod one; mod two;"),
            ("all/a/one.rs", "use crate::all::b::one::B;"),
            ("all/a/two.rs", "pub struct A;"),
            ("all/b.rs", "pub mod one; mod two;"),
            ("all/b/one.rs", "pub struct B;"),
            ("all/b/two.rs", "use super::super::a::two::A;"),
        ];
        let breaches = wrong(&files, &["lib", "all"]);
        let breach = "crates/x/src/: a circle of folders, all/a, all/b:\
             \n  crates/x/src/all/a/one.rs:1: imports crates/x/src/all/b/one.rs\
             \n  crates/x/src/all/b/two.rs:1: imports crates/x/src/all/a/two.rs";
        assert_eq!(breaches, [breach]);
    }

    #[test]
    fn a_circle_of_six_files_fails_and_one_of_five_passes() {
        let ring = |size: usize| -> Vec<(String, String)> {
            let names: String = (0..size).map(|n| format!("pub mod f{n};")).collect();
            let file = |n: usize| {
                let next = (n + 1) % size;
                (
                    format!("all/f{n}.rs"),
                    format!("pub struct S; use super::f{next}::S as Next;"),
                )
            };
            let roots = [
                ("lib.rs".into(), "mod all;".into()),
                ("all.rs".into(), names),
            ];
            roots.into_iter().chain((0..size).map(file)).collect()
        };
        let breaches = |size| {
            let ring = ring(size);
            let files: Vec<_> = ring.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            wrong(&files, &["lib", "all"])
        };
        assert_eq!(breaches(5), [""; 0]);
        let six = breaches(6);
        assert_eq!(six.len(), 1);
        assert!(six[0].starts_with("a circle of 6 files:\n  crates/x/src/all/f0.rs:1: imports"));
    }

    #[test]
    fn crates_depend_on_those_below_them() {
        let manifest = |name: &str, to: &str| {
            let text =
                format!("[package]\n[dependencies]\nlatewood-{to}.workspace = true\n\n[x]\n");
            (name.to_owned(), text)
        };
        let order = ["high", "low"];
        assert!(check_manifests(&order, &[manifest("high", "low")].into()).is_empty());
        let breach = "crates/low/Cargo.toml: depends on high, which is not on a lower floor";
        assert_eq!(
            check_manifests(&order, &[manifest("low", "high")].into()),
            [breach]
        );
    }
}
