//! The arguments of a command as COMMAND DOCS lists them, read from the syntax
//! line of the registry, so that the two cannot differ.
//!
//! `[x]` is optional, `a|b` one of several, `...` repeats what stands before
//! it (or is the rest of an optional group that repeats), a word in capitals
//! is a token; what follows a token belongs to it.

use latewood_wire::resp::Reply;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Argument {
    name: String,
    token: Option<String>,
    is_key: bool,
    optional: bool,
    multiple: bool,
    kind: Kind,
    parts: Vec<Argument>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Kind {
    #[default]
    Text,
    Token,
    OneOf,
    Block,
}

/// The arguments of a syntax line.
pub(crate) fn parse(syntax: &str) -> Vec<Argument> {
    let spaced = syntax
        .replace('[', " [ ")
        .replace(']', " ] ")
        .replace("...", " ... ");
    let mut words = spaced.split_whitespace();
    sequence(&mut words)
}

/// Arguments up to the end of the group.
fn sequence<'a>(words: &mut impl Iterator<Item = &'a str>) -> Vec<Argument> {
    let mut arguments: Vec<Argument> = Vec::new();
    let mut owes_value = false;
    while let Some(word) = words.next() {
        match word {
            "]" => break,
            "[" => {
                group(words, &mut arguments);
                owes_value = false;
            }
            "..." => {
                if let Some(last) = arguments.last_mut() {
                    last.multiple = true;
                }
            }
            word => {
                let argument = word_argument(word);
                match arguments.last_mut().filter(|_| owes_value) {
                    Some(token) if argument.kind != Kind::Token => {
                        let word = token.token.take();
                        *token = Argument {
                            token: word,
                            ..argument
                        };
                        owes_value = false;
                    }
                    _ => {
                        owes_value = argument.kind == Kind::Token;
                        arguments.push(argument);
                    }
                }
            }
        }
    }
    arguments
}

/// An optional group. One that says again what stands before it and ends in
/// `...` makes that repeat.
fn group<'a>(words: &mut impl Iterator<Item = &'a str>, arguments: &mut Vec<Argument>) {
    let mut inner = sequence(words);
    let repeats = inner.last().is_some_and(|last| last.multiple);
    let names = |list: &[Argument]| list.iter().map(|a| a.name.clone()).collect::<Vec<_>>();
    if repeats
        && let Some(before) = arguments.len().checked_sub(inner.len())
        && names(&arguments[before..]) == names(&inner)
    {
        let mut parts = arguments.split_off(before);
        let repeated = match (parts.pop(), parts.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                parts.extend(last);
                block(parts)
            }
        };
        arguments.push(Argument {
            multiple: true,
            ..repeated
        });
        return;
    }
    let argument = match (inner.pop(), inner.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            inner.extend(last);
            block(inner)
        }
    };
    arguments.push(Argument {
        optional: true,
        ..argument
    });
}

fn block(parts: Vec<Argument>) -> Argument {
    let name = parts.first().map_or(String::new(), |a| a.name.clone());
    Argument {
        name,
        kind: Kind::Block,
        parts,
        ..Argument::default()
    }
}

fn word_argument(word: &str) -> Argument {
    if word.contains('|') {
        let parts = word.split('|').map(word_argument).collect();
        let name = word.to_ascii_lowercase().replace('|', "-or-");
        return Argument {
            name,
            kind: Kind::OneOf,
            parts,
            ..Argument::default()
        };
    }
    let is_token = !word.bytes().any(|byte| byte.is_ascii_lowercase());
    Argument {
        name: word.to_ascii_lowercase(),
        token: is_token.then(|| word.to_owned()),
        is_key: matches!(word, "key" | "source" | "destination" | "newkey"),
        kind: if is_token { Kind::Token } else { Kind::Text },
        ..Argument::default()
    }
}

/// Writes the list of arguments.
pub(crate) fn reply(reply: &mut Reply<'_>, arguments: &[Argument]) {
    reply.array(arguments.len());
    for argument in arguments {
        let mut flags = Vec::new();
        if argument.optional {
            flags.push("optional");
        }
        if argument.multiple {
            flags.push("multiple");
        }
        let has_parts = !argument.parts.is_empty();
        let fields = [argument.token.is_some(), !flags.is_empty(), has_parts];
        reply.map(3 + fields.iter().filter(|is| **is).count());
        reply.key("name").bulk(&argument.name);
        reply.key("type").bulk(argument.type_name());
        reply.key("display_text").bulk(&argument.name);
        if let Some(token) = &argument.token {
            reply.key("token").bulk(token);
        }
        if !flags.is_empty() {
            reply.key("flags").set(flags.len());
            for flag in flags {
                reply.simple(flag);
            }
        }
        if has_parts {
            reply.bulk("arguments");
            self::reply(reply, &argument.parts);
        }
    }
}

impl Argument {
    fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Token => "pure-token",
            Kind::OneOf => "oneof",
            Kind::Block => "block",
            Kind::Text if self.is_key => "key",
            Kind::Text => "string",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::registry::COMMANDS;

    /// The arguments as text: `name:type`, `?` optional, `*` repeated.
    fn shown(arguments: &[Argument]) -> String {
        let show = |a: &Argument| {
            let token = a.token.as_ref().map_or(String::new(), |t| format!("{t}="));
            let parts = match a.parts.as_slice() {
                [] => String::new(),
                parts => format!("({})", shown(parts)),
            };
            let optional = if a.optional { "?" } else { "" };
            let multiple = if a.multiple { "*" } else { "" };
            let (name, kind) = (&a.name, a.type_name());
            format!("{token}{name}:{kind}{parts}{optional}{multiple}")
        };
        arguments.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_syntax_line_is_read() {
        for (syntax, expected) in [
            ("", ""),
            ("key [key ...]", "key:key*"),
            ("key from to", "key:key from:string to:string"),
            (
                "[ASYNC|SYNC]",
                "async-or-sync:oneof(ASYNC=async:pure-token SYNC=sync:pure-token)?",
            ),
            ("key [RETENTION ms]", "key:key RETENTION=ms:string?"),
            ("[LATEST] key", "LATEST=latest:pure-token? key:key"),
            (
                "name value [name value ...]",
                "name:block(name:string value:string)*",
            ),
            ("[name ...]", "name:string*?"),
        ] {
            assert_eq!(
                shown(&parse(syntax)).replace("?*", "*?"),
                expected,
                "{syntax}"
            );
        }
    }

    #[test]
    fn every_syntax_line_gives_names() {
        for spec in COMMANDS.all() {
            for spec in spec.subcommands().iter().chain([spec]) {
                let brackets = |bracket| spec.syntax.matches(bracket).count();
                assert_eq!(brackets('['), brackets(']'), "{}", spec.name);
                for argument in parse(spec.syntax) {
                    assert!(!argument.name.is_empty(), "{}: {}", spec.name, spec.syntax);
                }
            }
        }
    }
}
