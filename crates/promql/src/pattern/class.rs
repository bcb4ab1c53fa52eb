//! Classes of characters in brackets.

use super::{Done, Translation};

const BAD_RANGE: &str = "invalid character class range";
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

impl<'a> Translation<'a> {
    pub(super) fn class(&mut self) -> Done<'a> {
        let whole = self.rest();
        self.at += 1;
        self.out.push('[');
        if self.takes("^") {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            if !is_first && self.takes("]") {
                self.out.push(']');
                return Ok(());
            }
            is_first = false;
            if !self.posix_class()? && !self.named_class()? {
                self.range(whole)?;
            }
        }
    }

    /// `[:alpha:]`
    fn posix_class(&mut self) -> Done<'a, bool> {
        let Some((name, _)) = self
            .rest()
            .strip_prefix("[:")
            .and_then(|rest| rest.split_once(":]"))
        else {
            return Ok(false);
        };
        let start = self.at;
        self.at += name.len() + 4;
        let text = self.since(start);
        if POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
            self.out.push_str(text)
        } else {
            return Err((BAD_RANGE, text));
        }
        Ok(true)
    }

    /// One character or two with a dash between.
    fn range(&mut self, whole: &'a str) -> Done<'a> {
        let start = self.at;
        let low = self.class_char(whole)?;
        self.literal(low);
        let rest = self.rest();
        if rest.len() < 2 || !rest.starts_with('-') || rest.starts_with("-]") {
            return Ok(());
        }
        self.at += 1;
        let high = self.class_char(whole)?;
        if high < low {
            return Err((BAD_RANGE, self.since(start)));
        }
        self.out.push('-');
        self.literal(high);
        Ok(())
    }

    fn class_char(&mut self, whole: &'a str) -> Done<'a, char> {
        match self.peek() {
            None => Err(("missing closing ]", whole)),
            Some('\\') => self.escape(),
            Some(letter) => {
                self.next();
                Ok(letter)
            }
        }
    }
}
