//! Where lines go: a file or standard output, compressed or not.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::base::error::{Doing, Result};

const BUFFER_BYTES: usize = 1 << 20;

type Sink = BufWriter<Box<dyn Write>>;

/// An open one. It is whole after [`Output::finish`] only.
pub(crate) struct Output {
    to: To,
    doing: String,
}

enum To {
    Plain(Sink),
    Gzip(GzEncoder<Sink>),
}

impl Output {
    /// Opens `path`, or standard output.
    pub(crate) fn open(path: Option<&Path>, gzip: bool) -> Result<Self> {
        let doing = format!("write {}", path.unwrap_or(Path::new("-")).display());
        let sink: Box<dyn Write> = match path {
            Some(path) => Box::new(File::create(path).doing(&doing)?),
            None => Box::new(std::io::stdout()),
        };
        let sink = BufWriter::with_capacity(BUFFER_BYTES, sink);
        let to = match gzip {
            true => To::Gzip(GzEncoder::new(sink, Compression::fast())),
            false => To::Plain(sink),
        };
        Ok(Output { to, doing })
    }

    /// Writes some bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.to {
            To::Plain(sink) => sink.write_all(bytes),
            To::Gzip(packer) => packer.write_all(bytes),
        }
        .doing(&self.doing)
    }

    /// Writes what is left.
    pub(crate) fn finish(self) -> Result<()> {
        match self.to {
            To::Plain(mut sink) => sink.flush(),
            To::Gzip(packer) => packer.finish().and_then(|mut sink| sink.flush()),
        }
        .doing(&self.doing)
    }
}
