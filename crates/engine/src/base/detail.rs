//! Facts about a file, as a tree that prints as text and as JSON.

use std::fmt::{self, Display, Write};

/// One fact, or several.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// A whole number.
    Number(i128),
    /// A fractional number.
    Fraction(f64),
    /// Text.
    Text(String),
    /// Several facts of one kind.
    List(Vec<Detail>),
    /// Facts by name, in order.
    Fields(Vec<(&'static str, Detail)>),
}

macro_rules! from_number {
    ($($number:ty)*) => {$(
        impl From<$number> for Detail {
            fn from(number: $number) -> Self {
                // Integers in files have at most 64 bits.
                Self::Number(number as i128)
            }
        }
    )*};
}

from_number!(u8 u16 u32 u64 i64 usize);

impl From<&str> for Detail {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Detail {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Detail {
    fn from(number: f64) -> Self {
        Self::Fraction(number)
    }
}

impl Display for Detail {
    /// Writes lines of `name: value`, nested facts indented.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl Detail {
    /// The field called `name`.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Fields(fields) => {
                let found = fields.iter().find(|(field, _)| *field == name);
                found.map(|(_, value)| value)
            }
            _ => None,
        }
    }

    fn is_flat(&self) -> bool {
        !matches!(self, Self::List(_) | Self::Fields(_))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            Self::Number(number) => writeln!(f, "{number}"),
            Self::Fraction(number) => writeln!(f, "{number}"),
            Self::Text(text) => write_text(f, text).and_then(|()| writeln!(f)),
            Self::List(items) => items.iter().try_for_each(|item| {
                write!(f, "{:depth$}- ", "")?;
                match item {
                    Self::Fields(fields) if fields.iter().all(|(_, value)| value.is_flat()) => {
                        write_row(f, fields)
                    }
                    item if item.is_flat() => item.write(f, depth),
                    item => writeln!(f).and_then(|()| item.write(f, depth + 2)),
                }
            }),
            Self::Fields(fields) => fields.iter().try_for_each(|(name, value)| {
                write!(f, "{:depth$}{name}:", "")?;
                if value.is_flat() {
                    write!(f, " ").and_then(|()| value.write(f, depth))
                } else {
                    writeln!(f).and_then(|()| value.write(f, depth + 2))
                }
            }),
        }
    }
}

/// Text with control characters escaped, which could end the line or control a
/// terminal: keys may hold any bytes.
fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.chars().try_for_each(|letter| match letter {
        letter if letter.is_control() => write!(f, "{}", letter.escape_default()),
        letter => f.write_char(letter),
    })
}

/// Flat facts on one line.
fn write_row(f: &mut fmt::Formatter<'_>, fields: &[(&'static str, Detail)]) -> fmt::Result {
    for (index, (name, value)) in fields.iter().enumerate() {
        let separator = if index == 0 { "" } else { "  " };
        match value {
            Detail::Number(number) => write!(f, "{separator}{name} {number}")?,
            Detail::Fraction(number) => write!(f, "{separator}{name} {number}")?,
            Detail::Text(text) => {
                write!(f, "{separator}{name} ")?;
                write_text(f, text)?;
            }
            Detail::List(_) | Detail::Fields(_) => {}
        }
    }
    writeln!(f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_print_as_indented_lines() {
        let row = Detail::Fields(vec![("offset", 8_u64.into()), ("kind", "group".into())]);
        let facts = Detail::Fields(vec![
            ("file", "log segment".into()),
            ("groups", Detail::List(vec![row, Detail::from(7_u8)])),
            ("end", Detail::Fields(vec![("bytes", 2.5.into())])),
        ]);
        let text =
            "file: log segment\ngroups:\n  - offset 8  kind group\n  - 7\nend:\n  bytes: 2.5\n";
        assert_eq!(facts.to_string(), text);
        assert_eq!(facts.get("file"), Some(&Detail::from("log segment")));
    }

    #[test]
    fn words_stay_on_their_line_and_command_no_terminal() {
        let key = Detail::from("a\nb\u{1b}[2J \u{e9}");
        let row = Detail::Fields(vec![("id", 1_u8.into()), ("key", key.clone())]);
        let shown = r"a\nb\u{1b}[2J \u{e9}".replace(r"\u{e9}", "\u{e9}");
        let text = format!("id 1  key {shown}\n");
        assert_eq!(Detail::List(vec![row]).to_string(), format!("- {text}"));
        assert_eq!(key.to_string(), format!("{shown}\n"));
    }
}
