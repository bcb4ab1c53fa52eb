//! The words of a command as others may see them, in SLOWLOG and MONITOR: cut, and
//! without secrets.

use super::args::Args;
use crate::observe::cut;

/// Words of an entry; the last stands for the rest.
const WORDS_MAX: usize = 32;
/// What stands in the place of a secret.
const HIDDEN: &[u8] = b"(redacted)";

/// The words of the command called `name` as they may be shown.
pub(crate) fn shown_words(name: &str, args: Args<'_>) -> Vec<Vec<u8>> {
    let shown = if args.len() > WORDS_MAX {
        WORDS_MAX - 1
    } else {
        args.len()
    };
    let mut words: Vec<Vec<u8>> = (0..shown)
        .map(|i| {
            if is_secret(name, args, i) {
                HIDDEN.to_vec()
            } else {
                cut(args.word(i))
            }
        })
        .collect();
    if shown < args.len() {
        let more = args.len() - shown;
        words.push(format!("... ({more} more arguments)").into_bytes());
    }
    words
}

/// Whether word `i` of the command called `name` must not be shown to others.
pub(crate) fn is_secret(name: &str, args: Args<'_>, i: usize) -> bool {
    match name {
        "auth" => i >= 1,
        // A name or password may be AUTH itself: rather one word too many.
        "hello" => i >= 3 && (args.is(i - 1, "AUTH") || (i >= 4 && args.is(i - 2, "AUTH"))),
        "acl|setuser" => i >= 2,
        "config|set" => i % 2 == 1 && i >= 3 && args.is(i - 1, "requirepass"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_wire::resp::{Limits, Parsed, Parser, encode_command};

    fn shown(name: &str, words: &[&str]) -> Vec<String> {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, words);
        let mut parser = Parser::new();
        let limits = Limits {
            arguments_max: 1000,
            argument_bytes_max: 100_000,
            command_bytes_max: 1_000_000,
            inline_bytes_max: 1000,
            authenticated: true,
        };
        let parsed = parser.parse(&bytes, &limits).unwrap();
        assert!(matches!(parsed, Parsed::Command { .. }));
        let words = shown_words(name, Args::new(parser.command(), &bytes));
        words
            .into_iter()
            .map(|word| String::from_utf8(word).unwrap())
            .collect()
    }

    #[test]
    fn long_commands_are_cut() {
        let long = "x".repeat(130);
        let words: Vec<&str> = std::iter::repeat_n("w", 40).collect();
        assert_eq!(
            shown("del", &["del", &long])[1],
            format!("{}... (2 more bytes)", "x".repeat(128))
        );
        let cut = shown("del", &words);
        assert_eq!((cut.len(), &*cut[31]), (32, "... (9 more arguments)"));
        assert_eq!(shown("del", &words[..32]).len(), 32);
    }

    #[test]
    fn secrets_are_hidden() {
        let hidden = "(redacted)";
        assert_eq!(shown("auth", &["AUTH", "u", "p"]), ["AUTH", hidden, hidden]);
        assert_eq!(
            shown("hello", &["HELLO", "3", "auth", "u", "p", "SETNAME", "n"]),
            ["HELLO", "3", "auth", hidden, hidden, "SETNAME", "n"]
        );
        let hello = ["HELLO", "3", "SETNAME", "AUTH", "AUTH", "u", "p"];
        assert_eq!(shown("hello", &hello)[4..], [hidden; 3]);
        let hello = ["HELLO", "3", "AUTH", "AUTH", "p", "AUTH", "u", "p2"];
        assert_eq!(shown("hello", &hello)[3..], [hidden; 5]);
        assert_eq!(
            shown(
                "config|set",
                &["config", "set", "timeout", "0", "RequirePass", "p"]
            ),
            ["config", "set", "timeout", "0", "RequirePass", hidden]
        );
        assert_eq!(
            shown("acl|setuser", &["ACL", "SETUSER", "u", ">p"]),
            ["ACL", "SETUSER", hidden, hidden]
        );
    }
}
