//! An explicit-state check of the protocol by which owners of a tablet append to its log
//! (`owner.rs`), with the product's own decoder and judge (`envelope.rs`, `scan.rs`) as the reader
//! of every record.
//!
//! Lives claim the tablet beside each other; each owner appends what clients send it, one envelope
//! at a time, and tells them what it proved. Every request may be appended late, again or never;
//! every answer may be lost or be that for any copy; every read may show an old end; every life
//! may be killed between any two steps ([`steps`]). A breadth-first search visits all states
//! within [`Bounds`] and checks in each of them ([`properties`]):
//!
//! - what was acknowledged counts, exactly once, under the number it was acknowledged with, and no
//!   two owners acknowledged one number;
//! - what was denied does not count; nothing counts twice, whatever clients were told;
//! - what counts was appended by the owner there, after all that the owner appended before it;
//! - the log can be trimmed to any record that counts and is no EPOCH;
//! - an owner finds no record of its epoch that it did not append;
//! - a claim deposes once, however often it is sent.
//!
//! The rules of owners are those of `owner.rs` restated as steps, without TICK, CHECKPOINT and
//! FAREWELL, which are judged as DATA, and without the number in a claim (`follow`). The bounds are small: this is no proof.
//!
//! The search finds mistakes: [`Fault`] plants one of each kind, and each property is violated by one
//! of them. Comparing an
//! EPOCH's `after` with `<=` in the place of `==` is special. It is the same as not to compare at
//! all, since a claim names an epoch that is in the log before it, so none is later than that of
//! the state. Neither harms data: the epoch is the offset, so it is new whichever EPOCH counts,
//! and every reader of the log learns of it at the same place; what is proven before stays, and
//! what the deposed owner sends later never counts. But a copy of a claim deposes again:
//!
//! ```text
//! 0  EPOCH of life 0, after none    counts, life 0 owns the tablet
//! 1  the same, late                 counts: life 0 is deposed by itself, nobody is the owner
//! 2  DATA of life 0, epoch 0        foreign: denied
//! ```
//! Also a claim that lost long ago deposes the owner of now. The equality is needed for tablets to
//! keep their owners, not for what they store.

mod properties;
mod reader;
pub(crate) mod state;
mod steps;

use super::explore::search;
use properties::{Count, Owners, Violation};
use reader::Fault;
use state::Bounds;

/// Which violations end a search.
type Watched = fn(Violation) -> bool;

/// Within which the faults are looked for.
const SMALL: Bounds = Bounds {
    lives: 2,
    items: 2,
    log: 6,
};

/// Searches to the end and finds nothing: how many states there are, and of which kinds.
#[track_caller]
fn holds(fault: Fault, bounds: Bounds, watched: Watched) -> (usize, Count) {
    let mut model = Owners::new(fault, bounds);
    let outcome = search(&mut model, watched);
    outcome.holds(&(fault, bounds));
    (outcome.states, model.count)
}

/// Finds a violation.
#[track_caller]
fn finds(fault: Fault, watched: Watched) {
    search(&mut Owners::new(fault, SMALL), watched).finds(&fault);
}

#[test]
fn three_claims_with_two_items_each_hold() {
    let bounds = Bounds {
        lives: 3,
        items: 2,
        log: 6,
    };
    let (states, count) = holds(Fault::None, bounds, |_| true);
    assert!(states > 300_000, "{states}");
    assert!(count.two_acked > 5_000, "{count:?}");
    assert!(count.denied > 20_000, "{count:?}");
    assert!(count.doubled > 20_000, "{count:?}");
}

#[test]
fn two_claims_with_three_items_each_and_a_longer_log_hold() {
    let bounds = Bounds {
        lives: 2,
        items: 3,
        log: 7,
    };
    let (states, count) = holds(Fault::None, bounds, |_| true);
    assert!(states > 200_000, "{states}");
    assert!(count.two_acked > 10_000, "{count:?}");
}

#[test]
fn an_owner_that_acknowledges_at_any_offset_loses() {
    let fault = Fault::AcksAtAnyOffset;
    finds(fault, |found| matches!(found, Violation::Lost(_)));
    finds(fault, |found| matches!(found, Violation::SameNumber(_)));
}

#[test]
fn an_owner_that_takes_absence_for_proof_denies_what_counts() {
    let fault = Fault::TakesAbsenceForProof;
    finds(fault, |found| matches!(found, Violation::DeniedCounts(_)));
}

#[test]
fn an_owner_whose_claim_did_not_count_loses() {
    let fault = Fault::OwnsUnproven;
    finds(fault, |found| matches!(found, Violation::Lost(_)));
}

#[test]
fn an_owner_that_did_not_read_up_to_its_epoch_loses() {
    let fault = Fault::RecoversBeginning;
    finds(fault, |found| matches!(found, Violation::Lost(_)));
    finds(fault, |found| matches!(found, Violation::SameNumber(_)));
}

#[test]
fn an_owner_that_replaces_what_is_not_proven_turns_the_order_and_finds_what_it_gave_up() {
    let fault = Fault::ReplacesUnproven;
    finds(fault, |found| matches!(found, Violation::OutOfOrder(_)));
    finds(fault, |found| matches!(found, Violation::Stopped(_)));
}

#[test]
fn a_log_cannot_be_trimmed_to_a_record_that_does_not_count() {
    let fault = Fault::TrimsAnywhere;
    finds(fault, |found| matches!(found, Violation::TrimmedDiffers(_)));
}

#[test]
fn a_reader_that_ignores_numbers_counts_twice() {
    let fault = Fault::IgnoresNumbers;
    finds(fault, |found| matches!(found, Violation::Twice(_)));
}

#[test]
fn a_reader_that_ignores_the_epoch_counts_what_was_denied() {
    let fault = Fault::IgnoresEpoch;
    finds(fault, |found| matches!(found, Violation::DeniedCounts(_)));
    finds(fault, |found| matches!(found, Violation::OfDeposed(_)));
}

/// See the top: both faults let claims depose again, and neither touches data.
#[test]
fn a_reader_that_does_not_compare_after_for_equality_deposes_more_often_but_keeps_data() {
    let three = Bounds {
        lives: 3,
        items: 2,
        log: 5,
    };
    for fault in [Fault::IgnoresAfter, Fault::AfterAtMost] {
        finds(fault, |found| matches!(found, Violation::ClaimedTwice(_)));
        for (bounds, least) in [(SMALL, 100_000), (three, 150_000)] {
            let (states, _) = holds(fault, bounds, Violation::is_of_data);
            assert!(states > least, "{states}");
        }
    }
}

#[test]
fn a_lone_owner_is_deposed_only_where_after_is_not_compared() {
    let alone = Bounds {
        lives: 1,
        items: 2,
        log: 6,
    };
    for (fault, deposed) in [
        (Fault::None, false),
        (Fault::IgnoresAfter, true),
        (Fault::AfterAtMost, true),
    ] {
        let (_, count) = holds(fault, alone, Violation::is_of_data);
        assert_eq!(count.deposed > 0, deposed, "{fault:?}");
    }
}
