//! YAML as a tree whose nodes know their line and column.
//!
//! Rule files need places for errors, and strict fields. The parser gives events; they become a tree
//! here, within bounds: an alias is a copy of what it names, so copies count as nodes, and neither a
//! deep nor a small file that names itself a million times takes memory. Merge keys (`<<`) count as
//! in the YAML of Go. Only the first document is read.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use std::collections::HashMap;

/// Bytes of a file.
pub const FILE_BYTES_MAX: usize = 10 << 20;
/// Nodes of a file, copies by aliases included; a long text counts as several.
const NODES_MAX: usize = 1 << 20;
/// Bytes of text that count as one more node.
const TEXT_BYTES: usize = 64;
/// Levels of a file.
const DEPTH_MAX: usize = 64;

/// Where a node begins, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its line; 0 where it is nowhere.
    pub line: usize,
    /// Its column, in characters.
    pub column: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
    /// With those of its parts.
    nodes: usize,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// `null`, `~` or nothing at all.
    Null,
    /// A text; whether it is plain, so that it may be a number.
    Text(String, bool),
    List(Vec<Node>),
    /// Keys in the order of the file.
    Map(Vec<(Node, Node)>),
}

/// Why a text is no YAML that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: yaml: {what}")]
pub(crate) struct YamlError {
    pub(crate) place: Place,
    pub(crate) what: String,
}

impl Value {
    /// What it is, for errors.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Text(..) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// The first document of a text; `None` if there is none. The flag says whether more follow.
///
/// # Errors
/// Where it is no YAML, or over a bound.
pub(crate) fn parse(text: &str) -> Result<(Option<Node>, bool), YamlError> {
    if text.len() > FILE_BYTES_MAX {
        let what = format!("the file has more than {FILE_BYTES_MAX} bytes");
        return Err(fail(Place { line: 1, column: 1 }, what));
    }
    let mut parser = Parser::new_from_str(text);
    let mut builder = Builder::default();
    let mut is_first = true;
    while let Some(event) = parser.next_event() {
        let (event, span) = match event {
            Ok(event) => event,
            // What follows the first document need not be right.
            Err(_) if !is_first => break,
            Err(error) => return Err(fail(at(error.marker()), error.info().to_owned())),
        };
        match event {
            Event::DocumentEnd => is_first = false,
            Event::DocumentStart(_) if !is_first => return Ok((builder.root, true)),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => {}
            event => builder.take(event, span)?,
        }
    }
    Ok((builder.root, false))
}

fn at(marker: &saphyr_parser::Marker) -> Place {
    Place {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

fn fail(place: Place, what: impl Into<String>) -> YamlError {
    let what = what.into();
    YamlError { place, what }
}

/// A list or a mapping whose end has not come yet.
struct Open {
    place: Place,
    anchor: usize,
    parts: Vec<Node>,
    is_map: bool,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    root: Option<Node>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let place = at(&span.start);
        match event {
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err(fail(place, "an alias names what it is a part of"));
                };
                // Before there is a copy.
                let nodes = node.nodes;
                self.count(nodes, place)?;
                let node = self.anchors.get(&anchor).cloned();
                self.put(node.map(|node| Node { place, ..node }));
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(text.into_owned(), style, tag.as_deref());
                self.close(anchor, place, value)
            }
            Event::SequenceStart(anchor, _) => self.begin(place, anchor, false),
            Event::MappingStart(anchor, _) => self.begin(place, anchor, true),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else {
                    return Err(fail(place, "a list or mapping ends that did not begin"));
                };
                let value = if open.is_map {
                    Value::Map(pairs(open.parts)?)
                } else {
                    Value::List(open.parts)
                };
                self.close(open.anchor, open.place, value)
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, place: Place, anchor: usize, is_map: bool) -> Result<(), YamlError> {
        if self.open.len() == DEPTH_MAX {
            return Err(fail(place, format!("more than {DEPTH_MAX} levels")));
        }
        self.open.push(Open {
            place,
            anchor,
            parts: Vec::new(),
            is_map,
        });
        Ok(())
    }

    /// A node is whole.
    fn close(&mut self, anchor: usize, place: Place, value: Value) -> Result<(), YamlError> {
        let parts = match &value {
            Value::Null | Value::Text(..) => 0,
            Value::List(list) => list.iter().map(|node| node.nodes).sum(),
            Value::Map(map) => map.iter().map(|(key, value)| key.nodes + value.nodes).sum(),
        };
        let text = match &value {
            Value::Text(text, _) => text.len() / TEXT_BYTES,
            Value::Null | Value::List(_) | Value::Map(_) => 0,
        };
        let nodes = 1 + text + parts;
        let node = Node {
            place,
            value,
            nodes,
        };
        if anchor > 0 {
            // It is kept twice.
            self.count(nodes, place)?;
            self.anchors.insert(anchor, node.clone());
        }
        // Its parts were counted when they were added.
        self.count(1 + text, place)?;
        self.put(Some(node));
        Ok(())
    }

    fn put(&mut self, node: Option<Node>) {
        match self.open.last_mut() {
            Some(open) => open.parts.extend(node),
            None => self.root = node,
        }
    }

    fn count(&mut self, nodes: usize, place: Place) -> Result<(), YamlError> {
        self.nodes += nodes;
        if self.nodes > NODES_MAX {
            let what = format!("more than {NODES_MAX} values, those that aliases repeat included");
            return Err(fail(place, what));
        }
        Ok(())
    }
}

fn scalar(text: String, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_plain = style == ScalarStyle::Plain && tag.is_none();
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" if is_plain => Value::Null,
        _ => Value::Text(text, is_plain),
    }
}

/// Pairs of a mapping, with those that merge keys bring where they are not there themselves.
fn pairs(parts: Vec<Node>) -> Result<Vec<(Node, Node)>, YamlError> {
    let (mut own, mut merged) = (Vec::new(), Vec::new());
    let mut parts = parts.into_iter();
    while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
        if key.text() != Some("<<") {
            own.push((key, value));
            continue;
        }
        let place = value.place;
        match value.value {
            Value::Map(map) => merged.extend(map),
            Value::List(list) => {
                for node in list {
                    let Value::Map(map) = node.value else {
                        return Err(fail(
                            node.place,
                            "map merge requires map or sequence of maps",
                        ));
                    };
                    merged.extend(map);
                }
            }
            _ => return Err(fail(place, "map merge requires map or sequence of maps")),
        }
    }
    let mut names: HashMap<String, Place> = HashMap::new();
    for (key, _) in &own {
        let Some(name) = key.text() else {
            continue;
        };
        if let Some(first) = names.insert(name.to_owned(), key.place) {
            let what = format!("key {name:?} already set in map, at line {}", first.line);
            return Err(fail(key.place, what));
        }
    }
    for (key, value) in merged {
        let Some(name) = key.text() else {
            continue;
        };
        if !names.contains_key(name) {
            names.insert(name.to_owned(), key.place);
            own.push((key, value));
        }
    }
    Ok(own)
}

impl Node {
    /// That of an empty file.
    pub(crate) fn nothing() -> Self {
        Self {
            place: Place::default(),
            value: Value::Null,
            nodes: 1,
        }
    }

    /// Its text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text, _) => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(text: &str) -> Node {
        let (root, _) = parse(text).expect("it is YAML");
        root.expect("it has a document")
    }

    #[test]
    fn places_are_those_of_the_file() {
        let Value::Map(map) = root("a: 1\nb:\n  - c: 'x'\n").value else {
            panic!("not a mapping");
        };
        assert_eq!(map[1].0.place, Place { line: 2, column: 1 });
        let Value::List(list) = &map[1].1.value else {
            panic!("not a list");
        };
        assert_eq!(list[0].place, Place { line: 3, column: 5 });
    }

    #[test]
    fn merge_keys_fill_in_and_do_not_replace() {
        let Value::Map(map) = root("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n").value else {
            panic!("not a mapping");
        };
        let Value::Map(merged) = &map[1].1.value else {
            panic!("not a mapping");
        };
        let texts: Vec<_> = merged
            .iter()
            .map(|(key, value)| (key.text(), value.text()))
            .collect();
        assert_eq!(texts, [(Some("y"), Some("3")), (Some("x"), Some("1"))]);
    }

    #[test]
    fn a_bomb_of_aliases_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let last = format!("*a{}", level - 1);
            let ten = vec![last; 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{ten}]\n"));
        }
        let error = parse(&text).expect_err("it is a bomb");
        assert!(error.what.starts_with("more than"), "{error}");
        // One long text, again and again.
        let long = format!(
            "a: &a {}\nb: [{}]\n",
            "x".repeat(1 << 20),
            "*a,".repeat(1000)
        );
        assert!(parse(&long).is_err());
        let deep = "[".repeat(100_000);
        assert!(parse(&deep).is_err());
        let wide = format!("[{}]", "1,".repeat(NODES_MAX));
        assert!(parse(&wide).is_err());
        let large = "#".repeat(FILE_BYTES_MAX + 1);
        assert!(parse(&large).is_err());
    }

    #[test]
    fn keys_are_there_once_and_further_documents_are_told() {
        let error = parse("a: 1\na: 2\n").expect_err("twice");
        assert_eq!(
            error.to_string(),
            "2:1: yaml: key \"a\" already set in map, at line 1"
        );
        let (root, more) = parse("a: 1\n---\nb: 2\n").expect("YAML");
        assert!(more && root.is_some());
        assert!(matches!(parse(""), Ok((None, false))));
    }
}
