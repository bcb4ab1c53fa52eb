//! Groups and flags.

use super::{Done, Translation};

impl<'a> Translation<'a> {
    /// What a parenthesis opens.
    pub(super) fn group(&mut self) -> Done<'a> {
        let start = self.at;
        self.at += 1;
        if !self.takes("?") {
            self.out.push('(');
            self.opened();
            return Ok(());
        }
        let rest = self.rest();
        if rest.len() > 1 && (rest.starts_with('<') || rest.len() > 2 && rest.starts_with("P<")) {
            return self.named(start);
        }
        self.flags(start)
    }

    fn opened(&mut self) {
        self.open += 1;
        self.can_repeat = false;
    }

    fn named(&mut self, start: usize) -> Done<'a> {
        const FAULT: &str = "invalid named capture";
        let Some((head, _)) = self.rest().split_once('>') else {
            return Err((FAULT, &self.text[start..]));
        };
        self.at += head.len() + 1;
        let name = head.trim_start_matches('P').trim_start_matches('<');
        let is_word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
        if name.is_empty() || !name.bytes().all(is_word) {
            return Err((FAULT, self.since(start)));
        }
        self.out.push_str(&format!("(?P<{name}>"));
        self.opened();
        Ok(())
    }

    /// `(?i-s)` for what follows, `(?i-s:` for a group.
    fn flags(&mut self, start: usize) -> Done<'a> {
        let (mut on, mut off) = (String::new(), String::new());
        let (mut is_negative, mut has_flag) = (false, false);
        while let Some(letter) = self.next() {
            match letter {
                'i' | 'm' | 's' | 'U' => {
                    // The last one counts.
                    on.retain(|flag| flag != letter);
                    off.retain(|flag| flag != letter);
                    if is_negative {
                        off.push(letter)
                    } else {
                        on.push(letter)
                    }
                    has_flag = true;
                }
                '-' if !is_negative => (is_negative, has_flag) = (true, false),
                ':' | ')' if !is_negative || has_flag => {
                    let off = if off.is_empty() {
                        off
                    } else {
                        format!("-{off}")
                    };
                    let flags = format!("{on}{off}");
                    if letter == ':' {
                        self.out.push_str(&format!("(?{flags}:"));
                        self.opened();
                    } else if !flags.is_empty() {
                        self.out.push_str(&format!("(?{flags})"));
                    }
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(("invalid or unsupported Perl syntax", self.since(start)))
    }
}
