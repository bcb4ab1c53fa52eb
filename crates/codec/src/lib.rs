//! Samples to bytes and back.
//!
//! A frame holds up to [`FRAME_SAMPLES_MAX`] samples of one series, timestamps
//! strictly ascending, and states its own length, so that frames can lie end to end.
//! [`Encoder`] picks the smallest coding for timestamps and for values, trying
//! the last winner ([`Hint`]) first; [`Frame`] is a view of the bytes that
//! reads count, range and statistics from its header, finds a timestamp
//! without decoding the rest, and decodes all samples.
//!
//! Pure: no I/O, no clock, no state between frames but the hint. Every f64 and
//! i64 comes back bit for bit. No bytes make it panic or allocate more than a
//! frame's worth. The format is described in `docs/format/chunk.md`.
//!
//! ```
//! use latewood_codec::{Encoder, Frame, Hint};
//!
//! let (mut encoder, mut hint, mut bytes) = (Encoder::new(), Hint::default(), Vec::new());
//! encoder.encode(&[1_000, 2_000, 3_000], &[20.5, 20.6, 20.4], &mut hint, &mut bytes)?;
//!
//! let (frame, len) = Frame::parse(&bytes)?;
//! assert_eq!((len, frame.count(), frame.stats()?.max), (bytes.len(), 3, 20.6));
//! assert_eq!(frame.lower_bound(1_500)?, 1);
//! # Ok::<(), latewood_codec::Error>(())
//! ```

mod bitpack;
mod bits;
mod codings;
mod encoder;
mod error;
mod format;
mod frame;
mod pfor;
mod powers;
mod scalar;
mod simd;
mod stats;
mod stream;
mod timestamps;
mod values;
mod varint;

pub use encoder::{Encoder, Hint};
pub use error::Error;
pub use format::{FORMAT_VERSION, FRAME_SAMPLES_MAX};
pub use frame::Frame;
pub use simd::{portable_only, prefetch};
pub use stats::Stats;
pub use timestamps::TimestampCoding;
pub use values::ValueCoding;
