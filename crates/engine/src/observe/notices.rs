//! Notices for the operator. Repeated notices of one kind are limited: the first is
//! sent at once, then at most one a minute with a count of the others.
//!
//! Shared by the database, its log and its blocks. Tested here and by
//! `tests/notices.rs`.

use crate::base::opaque::opaque;
use crate::base::options::NoticeHook;
use crate::io::Clock;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Between two sentences of a kind.
const QUIET_NS: u64 = 60_000_000_000;

/// What a sentence is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    /// Writes are stopped for good.
    Halt,
    /// Blocks cannot be written.
    Flush,
    /// Series cannot be parked.
    Park,
    /// Keys of parked series cannot be written.
    ParkedKeys,
    /// Blocks cannot be merged.
    Merge,
    /// Late samples cannot be settled.
    Settle,
    /// Rows of compaction rules cannot be computed.
    Rules,
    /// Writes are refused for the memory budget.
    Memory,
    /// New series are refused for the memory budget.
    Series,
    /// Writes are refused for the disk budget.
    Disk,
    /// Writes are refused since a remote log takes no more.
    Log,
    /// The metadata of metrics cannot be written.
    Metadata,
    /// A block that is being read is damaged.
    Damage,
}

impl About {
    const COUNT: usize = Self::Damage as usize + 1;

    /// Behind the count of sentences left out: what they may have named
    /// instead, where a sentence names something.
    fn others(self) -> &'static str {
        match self {
            Self::Settle | Self::Rules => ", of this series or others",
            Self::Damage => ", of this file or others",
            _ => "",
        }
    }
}

/// Who hears of it; nobody by default. Clones share what was said when.
#[derive(Clone, Default)]
pub(crate) struct Notices(Option<Arc<Heard>>);

struct Heard {
    hook: NoticeHook,
    clock: Arc<dyn Clock>,
    kinds: [Kind; About::COUNT],
}

#[derive(Default)]
struct Kind {
    /// When the next sentence may come; 0 before the first.
    next_ns: AtomicU64,
    left_out: AtomicU64,
}

impl Notices {
    pub(crate) fn new(hook: Option<&NoticeHook>, clock: &Arc<dyn Clock>) -> Self {
        Self(hook.map(|hook| {
            Arc::new(Heard {
                hook: hook.clone(),
                clock: clock.clone(),
                kinds: Default::default(),
            })
        }))
    }

    /// Says what must be heard each time.
    pub(crate) fn say(&self, sentence: impl Display) {
        if let Some(heard) = &self.0 {
            heard.hook.warn(&sentence.to_string());
        }
    }

    /// Says it, unless its kind was heard of within the minute.
    #[cold]
    pub(crate) fn tell(&self, about: About, sentence: impl Display) {
        let Some(heard) = &self.0 else { return };
        let kind = &heard.kinds[about as usize];
        let now_ns = heard.clock.monotonic_ns();
        let free = |next_ns| (next_ns <= now_ns).then_some(now_ns + QUIET_NS);
        let order = Ordering::Relaxed;
        if kind.next_ns.fetch_update(order, order, free).is_err() {
            kind.left_out.fetch_add(1, order);
            return;
        }
        let text = match kind.left_out.swap(0, order) {
            0 => sentence.to_string(),
            times => {
                let others = about.others();
                format!("{sentence} ({times} more since the last line{others})")
            }
        };
        if matches!(
            about,
            About::Halt | About::Memory | About::Disk | About::Log
        ) {
            heard.hook.error(&text);
        } else {
            heard.hook.warn(&text);
        }
    }
}

opaque!(Notices);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sim::SimClock;
    use parking_lot::Mutex;

    /// Notices, the clock they go by, and what is said.
    fn heard() -> (Notices, Arc<SimClock>, Arc<Mutex<Vec<String>>>) {
        let (said, clock) = (Arc::new(Mutex::new(Vec::new())), SimClock::default());
        let (hears, clock) = (said.clone(), Arc::new(clock));
        let hook = NoticeHook::new(move |sentence| hears.lock().push(sentence.to_owned()));
        let as_clock: Arc<dyn Clock> = clock.clone();
        (Notices::new(Some(&hook), &as_clock), clock, said)
    }

    #[test]
    fn a_kind_is_heard_at_once_and_then_once_a_minute() {
        let (notices, clock, said) = heard();
        for _ in 0..3 {
            notices.tell(About::Memory, "no memory");
        }
        notices.tell(About::Flush, "no flush");
        clock.advance_ms(61_000);
        notices.tell(About::Memory, "no memory");
        let expected = [
            "no memory",
            "no flush",
            "no memory (2 more since the last line)",
        ];
        assert_eq!(*said.lock(), expected);
    }

    #[test]
    fn the_count_says_that_others_may_be_among_them() {
        let (notices, clock, said) = heard();
        notices.tell(About::Damage, "one.blk is damaged");
        notices.tell(About::Damage, "other.blk is damaged");
        clock.advance_ms(61_000);
        notices.tell(About::Damage, "one.blk is damaged");
        let expected = "one.blk is damaged (1 more since the last line, \
                        of this file or others)";
        assert_eq!(said.lock()[1], expected);
    }
}
