//! The request parser: bytes of a connection to commands.
//!
//! [`Parser`] is resumable. While a command is incomplete the parser keeps its
//! position, so no byte is read twice however small the pieces are, and the bytes
//! of a large argument are not read at all. Memory grows with the arguments
//! received, never with the number announced by a header. The result does not
//! depend on how the bytes are split; the tests split everywhere.
//!
//! As in Redis, a line of the array form ends at `\r` plus one byte of any value,
//! and an argument is followed by two bytes of any value.

#[cfg(test)]
mod tests;

use super::{Command, Limits, ProtocolError, inline, number};

/// The content at the start of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// A command, in [`Parser::command`], of that many bytes.
    Command {
        /// Length of the command; the next one begins after it.
        consumed: usize,
    },
    /// The command is incomplete.
    Incomplete {
        /// Minimum number of missing bytes; read as many before calling again.
        missing: usize,
    },
    /// An empty line or an empty array: skip it without a reply.
    Empty {
        /// Bytes to skip.
        consumed: usize,
    },
}

/// Parses the commands of one connection.
#[derive(Debug, Default)]
pub struct Parser {
    command: Command,
    /// Start of the next unread line or argument.
    position: usize,
    /// The line at `position` does not end before this offset.
    scanned: usize,
    /// Missing arguments; 0 if the header has not been read.
    remaining: usize,
    /// Bytes of the argument at `position`, once its header has been read.
    argument_bytes: Option<usize>,
}

/// Result of searching the end of a line.
enum Line {
    /// Offset of the byte that ends it.
    Ends(usize),
    Incomplete,
    TooLong,
}

impl Parser {
    /// A parser at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses the command at the start of `buffer`.
    ///
    /// After [`Parsed::Incomplete`], call again with the same bytes followed by
    /// more (they may have moved in memory). After any other result the parser is
    /// ready for the next command: pass the buffer from `consumed` on. Costs
    /// O(bytes of headers) in total over all calls for a command.
    ///
    /// # Errors
    /// [`ProtocolError`]: reply with its text and close the connection.
    #[inline]
    pub fn parse(&mut self, buffer: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        let parsed = if self.remaining > 0 {
            self.arguments(buffer, limits)
        } else {
            self.start(buffer, limits)
        };
        if !matches!(parsed, Ok(Parsed::Incomplete { .. })) {
            self.position = 0;
            self.scanned = 0;
            self.remaining = 0;
            self.argument_bytes = None;
        }
        parsed
    }

    /// The command returned by the last call of [`Parser::parse`].
    #[inline]
    pub fn command(&self) -> &Command {
        &self.command
    }

    fn start(&mut self, buffer: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        self.command.clear();
        match buffer {
            [] => return Ok(Parsed::Incomplete { missing: 1 }),
            // The common case first: up to nine arguments and a complete header.
            [b'*', digit @ b'1'..=b'9', b'\r', _, ..]
                if usize::from(digit - b'0') <= limits.arguments_max =>
            {
                self.remaining = usize::from(digit - b'0');
                self.position = 4;
            }
            [b'*', ..] => {
                let end = match self.line(buffer, b'\r', limits) {
                    Line::Ends(end) if end + 2 <= buffer.len() => end,
                    Line::Ends(_) | Line::Incomplete => {
                        return Ok(Parsed::Incomplete { missing: 1 });
                    }
                    Line::TooLong => return Err(ProtocolError::TooBigMultibulkCount),
                };
                let count = number::parse_i64(&buffer[1..end])
                    .filter(|&count| count <= i64::from(i32::MAX))
                    .ok_or(ProtocolError::InvalidMultibulkLength)?;
                let Some(count) = usize::try_from(count).ok().filter(|&count| count > 0) else {
                    return Ok(Parsed::Empty { consumed: end + 2 });
                };
                if count > limits.arguments_max {
                    return Err(if limits.authenticated {
                        ProtocolError::InvalidMultibulkLength
                    } else {
                        ProtocolError::UnauthenticatedMultibulkLength
                    });
                }
                self.remaining = count;
                self.position = end + 2;
                self.scanned = self.position;
            }
            [..] => return self.inline(buffer, limits),
        }
        self.arguments(buffer, limits)
    }

    fn arguments(&mut self, buffer: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        let command_bytes_max = limits.command_bytes();
        while self.remaining > 0 {
            let len_bytes = match self.argument_bytes {
                Some(len_bytes) => len_bytes,
                None => match self.argument_header(buffer, limits)? {
                    Some(len_bytes) => len_bytes,
                    None => return Ok(Parsed::Incomplete { missing: 1 }),
                },
            };
            // Cannot overflow: the length is an i64 that was checked, the position is in the buffer.
            let next = self.position + len_bytes + 2;
            if next > command_bytes_max {
                return Err(ProtocolError::TooBigCommand);
            }
            if next > buffer.len() {
                self.argument_bytes = Some(len_bytes);
                return Ok(Parsed::Incomplete {
                    missing: next - buffer.len(),
                });
            }
            self.command.push(self.position, len_bytes);
            self.argument_bytes = None;
            self.position = next;
            self.remaining -= 1;
        }
        Ok(Parsed::Command {
            consumed: self.position,
        })
    }

    /// Reads `$<length>\r\n` at `position` and moves past it; `None` if it is incomplete.
    #[inline]
    fn argument_header(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
    ) -> Result<Option<usize>, ProtocolError> {
        let (len_bytes, header_bytes) = match buffer.get(self.position..) {
            Some([b'$', a @ b'0'..=b'9', b'\r', _, ..]) => (usize::from(a - b'0'), 4),
            Some([b'$', a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', _, ..]) => {
                (usize::from(a - b'0') * 10 + usize::from(b - b'0'), 5)
            }
            _ => return self.long_argument_header(buffer, limits),
        };
        if len_bytes > limits.argument_bytes_max {
            return Err(too_long(limits));
        }
        self.position += header_bytes;
        Ok(Some(len_bytes))
    }

    #[cold]
    fn long_argument_header(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
    ) -> Result<Option<usize>, ProtocolError> {
        let end = match self.line(buffer, b'\r', limits) {
            Line::Ends(end) if end + 2 <= buffer.len() => end,
            Line::Ends(_) | Line::Incomplete => return Ok(None),
            Line::TooLong => return Err(ProtocolError::TooBigBulkCount),
        };
        let line = &buffer[self.position..end];
        let Some((b'$', digits)) = line.split_first().map(|(first, rest)| (*first, rest)) else {
            return Err(ProtocolError::ExpectedBulk(buffer[self.position]));
        };
        let len_bytes = number::parse_i64(digits)
            .and_then(|len_bytes| usize::try_from(len_bytes).ok())
            .ok_or(ProtocolError::InvalidBulkLength)?;
        if len_bytes > limits.argument_bytes_max {
            return Err(too_long(limits));
        }
        self.position = end + 2;
        self.scanned = self.position;
        Ok(Some(len_bytes))
    }

    fn inline(&mut self, buffer: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        let end = match self.line(buffer, b'\n', limits) {
            Line::Ends(end) => end,
            Line::Incomplete => return Ok(Parsed::Incomplete { missing: 1 }),
            Line::TooLong => return Err(ProtocolError::TooBigInline),
        };
        let line = buffer[..end].strip_suffix(b"\r").unwrap_or(&buffer[..end]);
        inline::split(line, &mut self.command)?;
        let consumed = end + 1;
        if self.command.is_empty() {
            return Ok(Parsed::Empty { consumed });
        }
        if self.command.len() > limits.arguments_max {
            return Err(ProtocolError::InvalidMultibulkLength);
        }
        Ok(Parsed::Command { consumed })
    }

    /// Searches `terminator` in the line at `position`, from where the last call stopped.
    fn line(&mut self, buffer: &[u8], terminator: u8, limits: &Limits) -> Line {
        let limit = self.position.saturating_add(limits.inline_bytes_max);
        let stop = buffer.len().min(limit.saturating_add(1));
        let start = self.scanned.max(self.position).min(stop);
        if let Some(offset) = memchr::memchr(terminator, &buffer[start..stop]) {
            self.scanned = start + offset;
            return Line::Ends(start + offset);
        }
        self.scanned = stop;
        if buffer.len() > limit {
            Line::TooLong
        } else {
            Line::Incomplete
        }
    }
}

#[cold]
fn too_long(limits: &Limits) -> ProtocolError {
    if limits.authenticated {
        ProtocolError::InvalidBulkLength
    } else {
        ProtocolError::UnauthenticatedBulkLength
    }
}
