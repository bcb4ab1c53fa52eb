//! The rules of single files, as functions of a file's text, and the rule that no file of tests
//! is left out of its program.
//!
//! They work on lines, not on syntax, which is enough for code formatted by
//! `cargo fmt`. Tested below with files that break each rule.

use std::collections::BTreeMap;

/// Longest file and longest function, in lines.
const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

/// Words that no line outside this file may contain, and the reasons.
const FORBIDDEN: [(&str, &str); 5] = [
    ("todo!(", "a stub"),
    ("unimplemented!(", "a stub"),
    ("#[ignore", "an ignored test"),
    ("assert!(true)", "a test that cannot fail"),
    ("dbg!(", "debugging left behind"),
];

/// Forbidden in the pure crates and in the engine outside `io/`.
const OUTSIDE_WORLD: [&str; 4] = ["std::fs", "SystemTime::now", "Instant::now", "std::net"];

/// Looks for a series in memory alone, in the engine above `series/`.
const AWAKE_ALONE: [&str; 7] = [
    "slab.get",
    "slab.iter",
    "slab.page_from",
    "slab.places()",
    "slab.len()",
    ".series(",
    ".series_mut(",
];

/// What makes such a look right: a note, or that the series was woken before.
const IS_AWAKE: [&str; 6] = [
    "// awake: ",
    ".wake(",
    ".wake_linked(",
    ".lock_series(",
    ".lock_slot(",
    ".lock_if_there(",
];

/// One line that breaks a rule.
pub(crate) struct Breach {
    pub(crate) line: usize,
    pub(crate) rule: String,
}

/// Every breach in the file at `path`, relative to the workspace.
pub(crate) fn check_file(path: &str, text: &str) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut breach = |line: usize, rule: String| breaches.push(Breach { line, rule });
    let lines: Vec<&str> = text.lines().collect();
    if !lines
        .first()
        .is_some_and(|first| first.starts_with("//!") || first.starts_with("#!"))
    {
        breach(1, "a file must begin with //! and its purpose".into());
    }
    if lines.len() > FILE_LINES_MAX {
        breach(1, format!("{} lines: one noun, one file", lines.len()));
    }
    let asks_presence = path.starts_with("crates/engine/src/")
        && !path.starts_with("crates/engine/src/series/")
        && !path.ends_with("base/slab.rs")
        && !path.contains("/tests");
    for (start, length, name) in functions(&lines) {
        let body = &lines[start..start + length];
        if asks_presence && let Some(at) = unexplained_look(body) {
            let why = "it may be parked: ask for its presence, or say `// awake: REASON`";
            breach(
                start + at + 1,
                format!("fn {name} looks for a series in memory; {why}"),
            );
        }
        if length > FUNCTION_LINES_MAX {
            breach(start + 1, format!("fn {name} has {length} lines"));
        }
    }
    let pure = path.starts_with("crates/model/src")
        || path.starts_with("crates/codec/src")
        || path.starts_with("crates/wire/src")
        || path.starts_with("crates/engine/src") && !path.starts_with("crates/engine/src/io/");
    let may_be_unsafe = path.starts_with("crates/codec/src/simd")
        || path.starts_with("crates/engine/src/io/mapped");
    for (index, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or(line);
        for (word, why) in FORBIDDEN {
            if code.contains(word) && !path.starts_with("xtask/") {
                breach(index + 1, format!("{word}: {why}"));
            }
        }
        if pure && let Some(word) = OUTSIDE_WORLD.iter().find(|word| code.contains(**word)) {
            breach(index + 1, format!("{word} only behind engine/io"));
        }
        if code.trim_start().starts_with("matches!(") && code.trim_end().ends_with(");") {
            breach(index + 1, "unused result of matches!".into());
        }
        let opens_unsafe = code.contains("unsafe {") || code.contains("unsafe fn");
        if opens_unsafe && !path.starts_with("xtask/") {
            if !may_be_unsafe {
                breach(index + 1, "unsafe outside its files".into());
            } else if !has_safety_note(&lines, index) {
                breach(index + 1, "unsafe without a SAFETY note above".into());
            }
        }
    }
    breaches
}

/// The first line of a function that looks for a series in memory alone, without a reason before.
fn unexplained_look(body: &[&str]) -> Option<usize> {
    let has = |line: &str, words: &[&str]| words.iter().any(|word| line.contains(word));
    let looks = |line: &&str| {
        let code = line.split("//").next().unwrap_or(line);
        // That of a presence.
        has(&code.replace(".series()", ""), &AWAKE_ALONE)
    };
    let at = body.iter().position(looks)?;
    let is_explained = body[..=at].iter().any(|line| has(line, &IS_AWAKE));
    (!is_explained).then_some(at)
}

fn has_safety_note(lines: &[&str], index: usize) -> bool {
    let above = lines[..index].iter().rev().take(12);
    above
        .clone()
        .any(|line| line.contains("SAFETY") || line.contains("# Safety"))
}

/// Start, length and name of each function, by indentation.
fn functions(lines: &[&str]) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize, String)> = None;
    for (index, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        match &open {
            None => {
                if let Some(name) = function_name(line.trim_start()) {
                    open = Some((index, indent, name));
                }
            }
            Some((start, at, name)) => {
                if indent == *at && line.trim() == "}" {
                    found.push((*start, index - start + 1, name.clone()));
                    open = None;
                } else if indent == *at && line.trim_end().ends_with(';') {
                    // A declaration without a body.
                    open = None;
                }
            }
        }
    }
    found
}

/// Files of tests that their program does not contain: where a crate has `tests/main.rs`, Cargo
/// finds no other test by itself. `files` are texts by path, `manifests` those of the crates.
pub(crate) fn left_out(
    files: &BTreeMap<String, String>,
    manifests: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut breaches = Vec::new();
    for (krate, manifest) in manifests {
        let root = format!("crates/{krate}/tests/");
        if !files.contains_key(&format!("{root}main.rs")) {
            continue;
        }
        for path in files.keys().filter(|path| path.starts_with(&root)) {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            let (folder, module) = match name {
                "main.rs" if manifest.contains(&path[root.len() - "tests/".len()..]) => continue,
                "mod.rs" => folder.rsplit_once('/').unwrap_or(("", folder)),
                _ => (folder, name.trim_end_matches(".rs")),
            };
            let parents = [
                format!("{folder}/main.rs"),
                format!("{folder}/mod.rs"),
                format!("{folder}.rs"),
            ];
            let named = format!("mod {module};");
            let mut texts = parents.iter().filter_map(|parent| files.get(parent));
            if !texts.any(|text| text.lines().any(|line| line.ends_with(&named))) {
                breaches.push(format!("{path}:1: no test program contains this file"));
            }
        }
    }
    breaches
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    loop {
        let word = words.next()?;
        if word == "fn" {
            let name = words.next()?;
            let end = name.find(['(', '<']).unwrap_or(name.len());
            return Some(name[..end].to_owned());
        }
        let qualifier = word.starts_with("pub")
            || ["const", "async", "unsafe", "extern", "\"C\""].contains(&word);
        if !qualifier {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_broken(path: &str, text: &str) -> Vec<String> {
        let breaches = check_file(path, text);
        breaches.into_iter().map(|breach| breach.rule).collect()
    }

    #[test]
    fn clean_code_passes() {
        let text = "//! What it is.\nfn one() {\n    let x = 1;\n}\n";
        assert!(rules_broken("crates/codec/src/a.rs", text).is_empty());
    }

    #[test]
    fn each_rule_is_noticed() {
        let long = format!("//! X.\nfn long() {{\n{}}}\n", "    f();\n".repeat(80));
        assert_eq!(rules_broken("a.rs", &long), ["fn long has 82 lines"]);
        assert_eq!(rules_broken("a.rs", "fn f() {}\n").len(), 1);
        assert_eq!(rules_broken("a.rs", &"//! x\n".repeat(501)).len(), 1);
        let stub = "//! X.\nfn f() {\n    todo!()\n}\n";
        assert_eq!(rules_broken("a.rs", stub).len(), 1);
        let clock = "//! X.\nuse std::fs::File;\n";
        assert_eq!(rules_broken("crates/engine/src/db.rs", clock).len(), 1);
        assert!(rules_broken("crates/engine/src/io/mapped.rs", clock).is_empty());
        let raw = "//! X.\nfn f() {\n    unsafe { g() }\n}\n";
        assert_eq!(rules_broken("a.rs", raw), ["unsafe outside its files"]);
        assert_eq!(rules_broken("crates/engine/src/io/mapped.rs", raw).len(), 1);
        let noted = "//! X.\nfn f() {\n    // SAFETY: g has no needs.\n    unsafe { g() }\n}\n";
        assert!(rules_broken("crates/engine/src/io/mapped.rs", noted).is_empty());
        let idle = "//! X.\nfn f() {\n    matches!(x, 1);\n}\n";
        assert_eq!(rules_broken("a.rs", idle).len(), 1);
    }

    #[test]
    fn a_look_for_awake_series_alone_needs_a_reason() {
        let within = |body: &str| {
            let text = format!("//! X.\nfn f() {{\n{body}    state.slab.get(place);\n}}\n");
            rules_broken("crates/engine/src/rules/a.rs", &text).len()
        };
        assert_eq!(within(""), 1);
        assert_eq!(within("    // awake: it has a head.\n"), 0);
        assert_eq!(within("    core.wake(state, id);\n"), 0);
        assert_eq!(within("    // Somebody else.\n"), 1);
        let asks = "//! X.\nfn f() {\n    core.presence(state, id);\n}\n";
        assert!(rules_broken("crates/engine/src/rules/a.rs", asks).is_empty());
        let inside = "//! X.\nfn f() {\n    state.slab.get(place);\n}\n";
        assert!(rules_broken("crates/engine/src/series/a.rs", inside).is_empty());
    }

    #[test]
    fn a_test_that_no_program_contains_is_noticed() {
        let named = "//! X.\nmod one;\npub(crate) mod two;\n";
        let texts = [
            ("main.rs", named),
            ("one.rs", ""),
            ("two/mod.rs", "mod three;\n"),
            ("two/three.rs", ""),
            ("two/four.rs", ""),
            ("five.rs", ""),
            ("six/main.rs", ""),
            ("seven/main.rs", ""),
        ];
        let files = texts.map(|(name, text)| (format!("crates/a/tests/{name}"), text.to_owned()));
        let manifest = "path = \"tests/main.rs\"\npath = \"tests/six/main.rs\"\n";
        let manifests = BTreeMap::from([("a".to_owned(), manifest.to_owned())]);
        let found = left_out(&files.into(), &manifests);
        let expected = ["five.rs", "seven/main.rs", "two/four.rs"];
        let expected = expected
            .map(|name| format!("crates/a/tests/{name}:1: no test program contains this file"));
        assert_eq!(found, expected);
    }
}
