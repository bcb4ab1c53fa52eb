//! Fields of mappings: each of its kind, and no unknown ones.
//!
//! Faults are gathered, so that a file tells all of them at once.

use crate::duration;
use crate::fault::Fault;
use crate::yaml::{Node, Place, Value};
use std::collections::BTreeMap;

/// Texts by name, each with the place of its name.
pub(crate) type Texts = BTreeMap<String, (String, Place)>;

/// Reads fields and gathers what is wrong with them.
#[derive(Default)]
pub(crate) struct Decoder {
    pub(crate) faults: Vec<Fault>,
    pub(crate) ignores_unknown: bool,
}

/// The fields of one mapping.
pub(crate) struct Fields<'n> {
    pub(crate) place: Place,
    /// What it is, by Prometheus' name.
    of: &'static str,
    pairs: &'n [(Node, Node)],
    known: Vec<&'static str>,
}

impl Decoder {
    /// Notes that something is wrong.
    pub(crate) fn fault(&mut self, place: Place, text: impl Into<String>) {
        self.faults.push(Fault::at(place, text));
    }

    fn wrong(&mut self, node: &Node, wanted: &str) {
        let what = match node.text() {
            Some(text) => format!("`{}`", text.chars().take(40).collect::<String>()),
            None => node.value.kind().to_owned(),
        };
        self.fault(node.place, format!("cannot unmarshal {what} into {wanted}"));
    }

    /// The fields of a mapping; none where there is nothing.
    pub(crate) fn fields<'n>(&mut self, node: &'n Node, of: &'static str) -> Fields<'n> {
        let pairs = match &node.value {
            Value::Map(pairs) => &pairs[..],
            Value::Null => &[],
            _ => {
                self.wrong(node, of);
                &[]
            }
        };
        Fields {
            place: node.place,
            of,
            pairs,
            known: Vec::new(),
        }
    }

    /// The items of a list; none where there is nothing.
    pub(crate) fn items<'n>(&mut self, node: Option<&'n Node>) -> &'n [Node] {
        match node.map(|node| (node, &node.value)) {
            None | Some((_, Value::Null)) => &[],
            Some((_, Value::List(list))) => list,
            Some((node, _)) => {
                self.wrong(node, "a list");
                &[]
            }
        }
    }

    pub(crate) fn text<'n>(&mut self, node: Option<&'n Node>) -> &'n str {
        match node.map(|node| (node, &node.value)) {
            None | Some((_, Value::Null)) => "",
            Some((_, Value::Text(text, _))) => text,
            Some((node, _)) => {
                self.wrong(node, "a string");
                ""
            }
        }
    }

    pub(crate) fn texts(&mut self, node: Option<&Node>) -> Texts {
        let Some(node) = node else {
            return Texts::new();
        };
        let fields = self.fields(node, "a map of strings");
        let mut texts = Texts::new();
        for (key, value) in fields.pairs {
            let (name, text) = (self.text(Some(key)), self.text(Some(value)));
            texts.insert(name.to_owned(), (text.to_owned(), key.place));
        }
        texts
    }

    /// Milliseconds; none where there is nothing.
    pub(crate) fn duration(&mut self, node: Option<&Node>) -> Option<i64> {
        let node = node?;
        let text = self.text(Some(node));
        if matches!(node.value, Value::Null) {
            return None;
        }
        match duration::parse(text) {
            Ok(millis) => Some(millis),
            Err(error) => {
                self.fault(node.place, error);
                None
            }
        }
    }

    /// A value that `parse` finds in a plain text; none where there is nothing.
    pub(crate) fn plain<T>(
        &mut self,
        node: Option<&Node>,
        kind: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let node = node?;
        let parsed = match &node.value {
            Value::Null => return None,
            Value::Text(text, true) => parse(text),
            _ => None,
        };
        if parsed.is_none() {
            self.wrong(node, kind);
        }
        parsed
    }

    pub(crate) fn number(&mut self, node: Option<&Node>) -> Option<i64> {
        self.plain(node, "int", |text| text.replace('_', "").parse().ok())
    }

    pub(crate) fn float(&mut self, node: Option<&Node>) -> Option<f64> {
        self.plain(node, "float64", |text| match text {
            ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
            ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
            _ if !text.contains(|letter: char| letter.is_ascii_digit()) => None,
            _ => text.replace('_', "").parse().ok(),
        })
    }

    pub(crate) fn flag(&mut self, node: Option<&Node>) -> bool {
        let flag = self.plain(node, "bool", |text| match text {
            "true" | "True" | "TRUE" => Some(true),
            "false" | "False" | "FALSE" => Some(false),
            _ => None,
        });
        flag.unwrap_or(false)
    }

    /// No fields are left that nobody asked for.
    pub(crate) fn end(&mut self, fields: &Fields<'_>) {
        if self.ignores_unknown {
            return;
        }
        for (key, _) in fields.pairs {
            let name = key.text().unwrap_or_default();
            if !fields.known.contains(&name) {
                let of = fields.of;
                self.fault(key.place, format!("field {name} not found in type {of}"));
            }
        }
    }
}

impl<'n> Fields<'n> {
    /// A field, if it is there.
    pub(crate) fn get(&mut self, name: &'static str) -> Option<&'n Node> {
        self.known.push(name);
        let found = self.pairs.iter().find(|(key, _)| key.text() == Some(name));
        found.map(|(_, value)| value)
    }
}
