//! Which records count, against a reference that looks at the whole log for every record, on
//! random logs in which owners follow one another, and everything is sent twice, late or wrong.
//!
//! The reference knows no state: a record counts if its epoch is the offset of the newest EPOCH
//! that counts, its number is how many records count before it, and its sequence is one more
//! than their groups; a claim with a number counts if that is how many records count before it.

use latewood_cluster::envelope::{Body, Claimant, Envelope, Hello, State};
use latewood_cluster::node::{Member, NodeId};
use latewood_cluster::scan::{Scan, Verdict, behind, first_state};
use proptest::prelude::*;

/// How the next record of a random log comes about.
#[derive(Clone, Debug)]
enum Step {
    /// A claim, of the true epoch or of one that is off by this number; the n in it, if there is one,
    /// likewise.
    Claim(u64, Option<u64>),
    /// What a node says of itself.
    Hello,
    /// What the owner would append now, with this many groups (0: a TICK), and its state altered
    /// in epoch, n and sequence.
    Record(u32, [u64; 3]),
    /// The same of a kind that is passed over.
    Skipped,
    /// The same value as this many records before.
    Again(usize),
    /// Bytes of another kind.
    Junk(Vec<u8>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let mostly_none = prop_oneof![8 => Just(0_u64), 1 => 1_u64..4];
    let off = [mostly_none.clone(), mostly_none.clone(), mostly_none];
    let step = prop_oneof![
        2 => (0_u64..3, proptest::option::of(0_u64..2)).prop_map(|(after, n)| Step::Claim(after, n)),
        1 => Just(Step::Hello),
        1 => Just(Step::Skipped),
        5 => (0_u32..3, off).prop_map(|(groups, off)| Step::Record(groups, off)),
        3 => (1_usize..8).prop_map(Step::Again),
        1 => proptest::collection::vec(any::<u8>(), 0..50).prop_map(Step::Junk),
    ];
    proptest::collection::vec(step, 1..60)
}

fn log(steps: Vec<Step>) -> Vec<Vec<u8>> {
    let mut log: Vec<Vec<u8>> = Vec::new();
    for (index, step) in steps.into_iter().enumerate() {
        let counted = reference(&log);
        let state = counted.last().map_or(State::START, |last| last.behind);
        let number = index as u8;
        log.push(match step {
            Step::Junk(bytes) => bytes,
            Step::Again(back) => match log.len().checked_sub(back) {
                Some(index) => log[index].clone(),
                None => Vec::new(),
            },
            Step::Hello => Envelope::Hello(hello(number)).encode().expect("small"),
            Step::Claim(off, n) => {
                let claimant = Claimant {
                    nonce: [number; 16],
                    node: 1,
                    address: String::new(),
                };
                let after = match state.epoch {
                    Some(epoch) => epoch.checked_sub(off),
                    None => (off > 0).then_some(off),
                };
                let n = n.map(|off| state.n.saturating_sub(off));
                let epoch = Envelope::Epoch { after, n, claimant };
                epoch.encode().expect("small")
            }
            Step::Skipped => {
                let epoch = Some(state.epoch.unwrap_or(0));
                let at = State { epoch, ..state };
                let payload = &[number][..];
                let body = Body::Skipped { kind: 128, payload };
                Envelope::Record { at, body }.encode().expect("small")
            }
            Step::Record(groups, [epoch, n, sequence]) => {
                let at = State {
                    epoch: Some(state.epoch.unwrap_or(0) + epoch),
                    n: state.n.saturating_sub(n),
                    sequence: state.sequence + sequence,
                };
                let payload = &[number][..];
                let body = match groups {
                    0 => Body::Tick,
                    groups => Body::Data { groups, payload },
                };
                Envelope::Record { at, body }.encode().expect("small")
            }
        });
    }
    log
}

fn hello(number: u8) -> Hello {
    Hello {
        nonce: [number; 16],
        by: Member::new(NodeId([1; 20])),
        owns: None,
        leaves: false,
    }
}

/// A record that counts, and the state behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counted {
    offset: u64,
    groups: Option<u32>,
    behind: State,
}

fn reference(log: &[Vec<u8>]) -> Vec<Counted> {
    let mut counted: Vec<Counted> = Vec::new();
    for (value, offset) in log.iter().zip(0_u64..) {
        let epochs = counted.iter().filter(|one| one.groups.is_none());
        let epoch = epochs.map(|one| one.offset).next_back();
        let groups: Vec<u32> = counted.iter().filter_map(|one| one.groups).collect();
        let n = groups.len() as u64;
        let sequence = 1 + groups.iter().map(|&groups| u64::from(groups)).sum::<u64>();
        let found = match Envelope::decode(value) {
            Ok(Envelope::Epoch { after, n: saw, .. })
                if after == epoch && saw.is_none_or(|saw| saw == n) =>
            {
                let epoch = Some(offset);
                (None, State { epoch, n, sequence })
            }
            Ok(Envelope::Record { at, body }) if (at.epoch, at.n) == (epoch, n) => {
                if at.sequence != sequence {
                    continue;
                }
                let groups = match body {
                    Body::Data { groups, .. } => groups,
                    _ => 0,
                };
                let sequence = sequence + u64::from(groups);
                let n = n + 1;
                (Some(groups), State { epoch, n, sequence })
            }
            _ => continue,
        };
        let (groups, behind) = found;
        counted.push(Counted {
            offset,
            groups,
            behind,
        });
    }
    counted
}

/// What counts by the scan, of the records from `begin` on.
fn scanned(log: &[Vec<u8>], begin: u64, scan: &mut Scan) -> Vec<Counted> {
    let mut counted = Vec::new();
    for (value, offset) in log.iter().zip(0_u64..).skip(begin as usize) {
        let groups = match scan.next(offset, value) {
            Verdict::Epoch(_) => None,
            Verdict::Counts { at, body } => {
                assert_eq!(behind(at, &body), scan.state());
                Some((scan.state().sequence - at.sequence) as u32)
            }
            _ => continue,
        };
        let behind = scan.state();
        counted.push(Counted {
            offset,
            groups,
            behind,
        });
    }
    counted
}

proptest! {
    #[test]
    fn what_counts_is_what_the_reference_says(steps in steps()) {
        let log = log(steps);
        let mut scan = Scan::new(State::START);
        let counted = scanned(&log, 0, &mut scan);
        prop_assert_eq!(&counted, &reference(&log));
        let counters = scan.counters();
        let epochs = counted.iter().filter(|one| one.groups.is_none()).count() as u64;
        prop_assert_eq!(counters.epochs, epochs);
        prop_assert_eq!(counters.counted + epochs, counted.len() as u64);
        let others = counters.repeated + counters.foreign + counters.lost_claims;
        let all = others + counters.hellos + counters.malformed + counters.newer + counted.len() as u64;
        prop_assert_eq!(all, log.len() as u64);
    }

    #[test]
    fn no_copy_of_a_record_that_counts_counts_again(steps in steps()) {
        let mut log = log(steps);
        let counted = reference(&log);
        for one in &counted {
            log.push(log[one.offset as usize].clone());
        }
        prop_assert_eq!(scanned(&log, 0, &mut Scan::new(State::START)), counted);
    }

    #[test]
    fn a_log_can_be_trimmed_to_any_record_that_counts_and_is_no_epoch(steps in steps()) {
        let log = log(steps);
        let counted = reference(&log);
        for (index, first) in counted.iter().enumerate() {
            let begin = first.offset;
            let state = first_state(begin, &log[begin as usize]);
            prop_assert_eq!(state.is_some(), first.groups.is_some() || begin == 0);
            if let Some(state) = state {
                let rest = scanned(&log, begin, &mut Scan::new(state));
                prop_assert_eq!(&rest[..], &counted[index..]);
            }
        }
    }
}

#[test]
fn a_later_version_is_told() {
    let tick = Envelope::Record {
        at: State {
            epoch: Some(0),
            n: 0,
            sequence: 1,
        },
        body: Body::Tick,
    };
    let mut later = tick.encode().expect("small");
    later[4] = 9;
    later.truncate(later.len() - 4);
    let sum = crc_fast::crc32_iscsi(&later);
    later.extend_from_slice(&sum.to_le_bytes());
    let mut scan = Scan::new(State::START);
    assert_eq!(scan.next(0, &later), Verdict::Newer(9));
    assert_eq!(scan.state(), State::START);
    assert_eq!(first_state(1, &later), None);
}

#[test]
fn no_log_begins_with_a_hello() {
    let hello = Envelope::Hello(hello(1)).encode().expect("small");
    assert_eq!(first_state(1, &hello), None);
    // A new log may: somebody followed it before it was claimed.
    assert_eq!(first_state(0, &hello), Some(State::START));
}
