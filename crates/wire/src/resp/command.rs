//! One command: the positions of its arguments.
//!
//! Arguments of the array form are ranges into the caller's read buffer, so a
//! large value is never copied. Inline commands have quotes and escapes, so
//! their arguments are unescaped into text that the command owns. The vectors
//! are reused: once warm, no command allocates.

/// Larger vectors are freed after the command that needed them.
const KEPT_ARGUMENTS: usize = 4096;
const KEPT_TEXT_BYTES: usize = 64 * 1024;

/// The arguments of one parsed command. The first is the command's name.
#[derive(Debug, Default)]
pub struct Command {
    spans: Vec<Span>,
    text: Vec<u8>,
    inline: bool,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    len_bytes: u32,
}

impl Command {
    /// Number of arguments, including the name.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no arguments, not even a name.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Argument `i`. `buffer` must be the bytes the command was parsed from,
    /// beginning with its first byte.
    ///
    /// # Panics
    /// If `i >= self.len()` or `buffer` is shorter than the command.
    #[inline]
    pub fn arg<'a>(&'a self, buffer: &'a [u8], i: usize) -> &'a [u8] {
        let Span { start, len_bytes } = self.spans[i];
        let from = if self.inline { &self.text } else { buffer };
        &from[start as usize..][..len_bytes as usize]
    }

    /// All arguments in order; `buffer` as for [`Command::arg`].
    pub fn args<'a>(
        &'a self,
        buffer: &'a [u8],
    ) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + 'a {
        (0..self.len()).map(move |i| self.arg(buffer, i))
    }

    /// Bytes of memory kept for this and later commands.
    pub fn allocated_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.text.capacity()
    }

    pub(super) fn clear(&mut self) {
        self.spans.clear();
        self.text.clear();
        self.inline = false;
        if self.spans.capacity() > KEPT_ARGUMENTS {
            self.spans.shrink_to(KEPT_ARGUMENTS);
        }
        if self.text.capacity() > KEPT_TEXT_BYTES {
            self.text.shrink_to(KEPT_TEXT_BYTES);
        }
    }

    /// Adds an argument of the array form. Offsets fit because a command is
    /// limited to [`Limits::command_bytes`](super::Limits::command_bytes).
    #[inline]
    pub(super) fn push(&mut self, start: usize, len_bytes: usize) {
        self.spans.push(Span {
            start: start as u32,
            len_bytes: len_bytes as u32,
        });
    }

    /// Makes this an inline command and returns the buffer for its arguments.
    pub(super) fn begin_inline(&mut self) -> &mut Vec<u8> {
        self.inline = true;
        &mut self.text
    }

    /// Ends an inline argument that began at `start` of the buffer.
    pub(super) fn end_inline_argument(&mut self, start: usize) {
        self.push(start, self.text.len() - start);
    }
}

/// Appends a command in the array form, as clients send it.
pub fn encode_command<A: AsRef<[u8]>>(out: &mut Vec<u8>, args: &[A]) {
    let mut digits = itoa::Buffer::new();
    out.push(b'*');
    out.extend_from_slice(digits.format(args.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    for arg in args {
        let arg = arg.as_ref();
        out.push(b'$');
        out.extend_from_slice(digits.format(arg.len()).as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}
