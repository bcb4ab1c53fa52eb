//! Reads the modules, imports, paths and definitions of one file.
//!
//! Works on tokens, not on syntax: comments, strings and code built only for tests or fuzzing are
//! skipped; everything else counts, also inside macros. Tested below.

/// A statement that relates a file to others.
#[derive(Debug, PartialEq)]
pub(super) struct Fact {
    /// The enclosing inline modules, outermost first.
    pub(super) scope: Vec<String>,
    pub(super) line: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    /// `mod name;` or, inline, `mod name {`.
    Module { name: String, inline: bool },
    /// One leaf of a `use`; the alias is `*` for a glob.
    Use { path: Vec<String>, alias: String },
    /// A path of at least two words in code.
    Path(Vec<String>),
    /// An item that the module defines.
    Definition(String),
}

const DEFINES: [&str; 9] = [
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "type",
    "const",
    "static",
    "macro_rules",
];

#[derive(Clone, Copy, Debug, PartialEq)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Words, `::` and single characters of `text`.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < text.len() {
        let rest = &text[at..];
        let first = rest.chars().next().unwrap_or(' ');
        let len = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string_len(rest),
            '\'' => quote_len(rest),
            'r' | 'b' | 'c' if prefix_len(rest) > 0 => prefix_len(rest),
            _ => 0,
        };
        if len > 0 || first.is_whitespace() {
            let len = len.max(first.len_utf8());
            line += rest[..len].matches('\n').count();
            at += len;
            continue;
        }
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let len = match first {
            ':' if rest.starts_with("::") => 2,
            c if word(c) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let text = &rest[..len];
        tokens.push(Token { text, line });
        at += len;
    }
    tokens
}

/// Length of a string that begins with `"`.
fn string_len(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => _ = chars.next(),
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of a character literal, or of the quote of a lifetime.
fn quote_len(text: &str) -> usize {
    let inner = &text[1..];
    let c = inner.chars().next().map_or(1, char::len_utf8);
    match inner.strip_prefix('\\') {
        Some(escape) => escape
            .get(1..)
            .and_then(|rest| rest.find('\''))
            .map_or(1, |end| end + 4),
        None if inner[c..].starts_with('\'') => c + 2,
        None => 1,
    }
}

/// Length of a string with a prefix such as `r#` or `b`; 0 if there is none.
fn prefix_len(text: &str) -> usize {
    let letters = text.len() - text.trim_start_matches(['b', 'c', 'r']).len();
    let (prefix, rest) = text.split_at(letters);
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let quoted = &rest[hashes..];
    match quoted.starts_with('"') {
        true if prefix.contains('r') => {
            let end = format!("\"{}", "#".repeat(hashes));
            let len = quoted[1..].find(&end).unwrap_or(quoted.len());
            (letters + hashes + 1 + len + end.len()).min(text.len())
        }
        true if hashes == 0 => letters + string_len(quoted),
        _ => 0,
    }
}

/// The statements of a file, without code built only for tests or fuzzing.
pub(super) fn read(text: &str) -> Vec<Fact> {
    let tokens = tokens(text);
    let mut reader = Reader {
        word: tokens.iter().map(|token| token.text).collect(),
        ..Reader::default()
    };
    let mut at = 0;
    while at < tokens.len() {
        reader.line = tokens[at].line;
        at = reader.step(at);
    }
    reader.facts
}

#[derive(Default)]
struct Reader<'a> {
    word: Vec<&'a str>,
    line: usize,
    depth: usize,
    /// Open inline modules, with the depth outside each.
    scope: Vec<(String, usize)>,
    facts: Vec<Fact>,
}

impl Reader<'_> {
    fn at(&self, at: usize) -> &str {
        self.word.get(at).copied().unwrap_or("")
    }

    fn fact(&mut self, kind: Kind) {
        let scope = self.scope.iter().map(|(name, _)| name.clone()).collect();
        let line = self.line;
        self.facts.push(Fact { scope, line, kind });
    }

    /// Reads one element at a token; returns the position of the next.
    fn step(&mut self, at: usize) -> usize {
        let outside = self.scope.last().map_or(0, |(_, depth)| depth + 1);
        match self.at(at) {
            "#" if self.at(at + 1) == "[" => {
                let end = self.closed(at + 1);
                return if only_tests(&self.word[at..end]) {
                    self.item_end(end)
                } else {
                    end
                };
            }
            "{" => self.depth += 1,
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                self.scope.pop_if(|(_, depth)| *depth == self.depth);
            }
            "use" if self.at(at + 1) != "<" => {
                let leaf = self.depth == outside;
                return self.tree(at + 1, &[], leaf) + 1;
            }
            "mod" if is_word(self.at(at + 1)) => {
                let name = self.at(at + 1).to_owned();
                let inline = self.at(at + 2) == "{";
                self.fact(Kind::Module {
                    name: name.clone(),
                    inline,
                });
                if inline {
                    self.scope.push((name, self.depth));
                    self.depth += 1;
                }
                return at + 3;
            }
            word if DEFINES.contains(&word) && self.depth == outside => {
                let name = at + 1 + usize::from(matches!(self.at(at + 1), "!" | "mut"));
                if is_word(self.at(name)) {
                    self.fact(Kind::Definition(self.at(name).to_owned()));
                }
            }
            word if is_word(word) && self.at(at + 1) == "::" => return self.path(at),
            _ => {}
        }
        at + 1
    }

    /// Reads a path in code; returns its end.
    fn path(&mut self, start: usize) -> usize {
        let mut at = start;
        let mut path = vec![self.at(at).to_owned()];
        while self.at(at + 1) == "::" && is_word(self.at(at + 2)) {
            at += 2;
            path.push(self.at(at).to_owned());
        }
        let before = |n: usize| start.checked_sub(n).map_or("", |at| self.at(at));
        let visibility = before(1) == "in" && before(2) == "(";
        if path.len() > 1 && before(1) != "::" && !visibility {
            self.fact(Kind::Path(path));
        }
        at + 1
    }

    /// Reads the leaves of a `use`; returns its end. Only those at module level have names that
    /// other files can use.
    fn tree(&mut self, mut at: usize, before: &[String], named: bool) -> usize {
        let mut path = before.to_vec();
        loop {
            match self.at(at) {
                "::" => {}
                "{" => {
                    while !matches!(self.at(at), "}" | "") {
                        at = self.tree(at + 1, &path, named);
                    }
                    return at + 1;
                }
                word => path.push(word.to_owned()),
            }
            at += 1;
            if self.at(at) != "::" && self.at(at - 1) != "::" {
                break;
            }
        }
        if path.last().is_some_and(|last| last == "}") {
            return at - 1;
        }
        if path.len() > 1 {
            path.pop_if(|last| last == "self");
        }
        let mut alias = path.last().cloned().unwrap_or_default();
        if alias == "*" {
            path.pop();
        }
        if self.at(at) == "as" {
            alias = self.at(at + 1).to_owned();
            at += 2;
        }
        if !named && alias != "*" {
            alias.clear();
        }
        self.fact(Kind::Use { path, alias });
        at
    }

    /// Position after the bracket that closes the one at `at`.
    fn closed(&self, mut at: usize) -> usize {
        let mut depth = 0;
        loop {
            match self.at(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                "" => return at,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return at;
            }
        }
    }

    /// Position after the item at `at` and its attributes.
    fn item_end(&self, mut at: usize) -> usize {
        loop {
            match self.at(at) {
                ";" => return at + 1,
                "{" => return self.closed(at),
                "(" | "[" => at = self.closed(at),
                "}" | "" => return at,
                _ => at += 1,
            }
        }
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Whether an attribute restricts its item to tests or fuzzing.
fn only_tests(attribute: &[&str]) -> bool {
    let has = |words: &[&str]| attribute.iter().any(|word| words.contains(word));
    let is_kept = has(&["not"]) || has(&["feature"]) && !has(&["fuzzing"]);
    attribute.get(2) == Some(&"cfg") && has(&["test", "fuzzing"]) && !is_kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        let show = |fact: Fact| match fact.kind {
            Kind::Module { name, inline } => format!("mod {name} {inline}"),
            Kind::Use { path, alias } => format!("use {} {alias}", path.join("::")),
            Kind::Path(path) => path.join("::"),
            Kind::Definition(name) => format!("def {name}"),
        };
        read(text).into_iter().map(show).collect()
    }

    #[test]
    fn imports_are_read_leaf_by_leaf() {
        let text = "pub use crate::a::{self, B as C, d::{E, *},};\nuse f;";
        let uses = [
            "crate::a a",
            "crate::a::B C",
            "crate::a::d::E E",
            "crate::a::d *",
            "f f",
        ];
        assert_eq!(said(text), uses.map(|leaf| format!("use {leaf}")));
    }

    #[test]
    fn strings_comments_and_tests_say_nothing() {
        let text = r##"// use a;
            const S: &str = r#"use b; " "#; /* use c; */ const T: [char; 2] = ['"', '\''];
            #[cfg(test)]
            #[allow(x)]
            mod tests { use d; }
            #[cfg(any(test, fuzzing, feature = "fuzzing"))] mod fuzz;
            fn f<'a>(x: &'a str) { "\"use e;"; super::g::h(x) }
            impl S { fn hidden() -> impl T + use<'_> {} }
            #[cfg(not(test))] mod last { mod inner; }"##;
        let says = [
            "def S",
            "def T",
            "def f",
            "super::g::h",
            "mod last true",
            "mod inner false",
        ];
        assert_eq!(said(text), says);
        assert_eq!(
            read(text).last().map(|fact| (fact.line, fact.scope.len())),
            Some((9, 1))
        );
    }
}
