//! Followers, and owners that answer from memory (`SCALE.md`, section 9).
//!
//! A follower applies the log. It is as fresh as the moment at which it sent the newest HELLO that
//! it read back, and answers for up to the bound after it. An owner answers for up to the lease
//! after it *first* sent its newest proven record; an answer waits until all that is in it is
//! proven. Whoever claims says which record it saw last, and the claim is void if another counts
//! before it. The outcome of a claim is what the log says: its claimant owns the tablet or gives
//! it up by FAREWELL whenever it reads its EPOCH.
//!
//! A new owner answers, and writes, once `wait` passed since it received the newest record, EPOCH
//! or other, of all owners before it that did not say FAREWELL. `wait` is at least the lease: in
//! ticks they may be equal; clocks of machines need a margin.
//!
//! In every state:
//!
//! - what was acknowledged counts, once; what was in an answer does, or still may;
//! - an answer of an owner has all that was acknowledged or in any answer before the question;
//! - an answer of a follower has all that was in the log longer ago than the bound;
//! - an automatic claim deposes nobody of whom a record, or the EPOCH, counted after it was
//!   decided on;
//! - a node that reads its EPOCH, and did not start anew since it claimed, knows of it.
//!
//! Which records count is checked in [`super::owners`]; when to claim, in [`super::silence`].

mod state;
mod steps;

use super::explore::{Model, Walks, search, walk, walks_hold};
use super::record::{Body, Judge, Seen, Verdict};
use state::{Bounds, Times, Violation, World};
use steps::{Step, steps};

/// What is wrong, on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A new owner waits from the sending of its EPOCH on.
    WaitsFromClaim,
    /// A new owner waits for records of the newest epoch alone, of which an EPOCH is none.
    WaitsForLastEpoch,
    /// A new owner takes the FAREWELL of the one before for that of all before.
    FarewellEndsAll,
    /// A new owner writes before it may answer.
    WritesAtOnce,
    /// A lease is counted from the last sending of a record that was sent again.
    LeaseFromLast,
    /// An owner answers until its FAREWELL is proven.
    AnswersUntilFarewell,
    /// An answer does not wait for the proof of what is in it.
    ShowsUnproven,
    /// A strict answer waits for a record that was sent before the question.
    StrictByOlder,
    /// A follower is as fresh as the arrival of the newest record of the owner.
    FreshByArrival,
    /// A follower is as fresh as the moment at which it read its HELLO back.
    FreshFromReceipt,
    /// A follower takes any HELLO of its own for the newest.
    IgnoresNonce,
    /// Automatic claims do not carry `n`.
    NoNumber,
    /// Claims with `n` count whatever epoch they depose.
    IgnoresAfter,
    /// A claim that lost is made again with what the log says now.
    RepeatsClaim,
    /// A follower forgets a claim whose outcome it does not know.
    ForgetsClaim,
}

/// The protocol, with a fault or without.
struct Follow {
    judge: Judge,
    fault: Fault,
    bounds: Bounds,
}

impl Model for Follow {
    type World = World;
    type Seen = Seen;
    type Step = Step;
    type Violation = Violation;

    fn start(&self) -> World {
        World::start(self.bounds)
    }

    fn look(&mut self, world: &World) -> Seen {
        world.scan(&mut self.judge)
    }

    fn steps(&mut self, world: &World, seen: &Seen) -> Vec<(Step, World)> {
        steps(self, world, seen)
    }

    /// In a walk much happens within a tick, and budgets last.
    fn weight(&self, step: Step) -> u64 {
        match step {
            Step::Restart { .. } => 1,
            Step::Send {
                body: Body::Farewell,
                ..
            } => 1,
            Step::Pass | Step::Hello { .. } => 3,
            Step::Claim { .. } | Step::Ask { .. } => 4,
            Step::Send {
                body: Body::Data(_),
                ..
            } => 8,
            _ => 20,
        }
    }

    fn violations(&mut self, world: &World, seen: &Seen) -> Vec<Violation> {
        let mut found = Vec::from_iter(world.broken);
        let records = world.log.iter().zip(&seen.verdicts);
        let mut counted = 0;
        for (entry, _) in records.filter(|(_, verdict)| **verdict == Verdict::Counts) {
            let item = entry.value.item();
            if counted & item != 0 {
                found.push(Violation::Twice(item.trailing_zeros() as u8));
            }
            counted |= item;
        }
        let flight = world.flight.iter();
        let may_count = flight.fold(counted, |items, value| items | value.item());
        for item in 0..world.written {
            let is_in = |items: u8| items & 1 << item != 0;
            if is_in(world.acked) && !is_in(counted) {
                found.push(Violation::Lost(item));
            }
            if is_in(world.known) && !is_in(may_count) {
                found.push(Violation::Vanished(item));
            }
        }
        found
    }
}

const SHORT: Times = Times {
    lease: 2,
    wait: 2,
    bound: 2,
};

/// Neither HELLO nor claims: for others to add to.
const TWO: Bounds = Bounds {
    nodes: 2,
    log: 4,
    items: 1,
    hellos: 0,
    claims: 0,
    forced: 0,
    restarts: 0,
    strict: false,
    times: SHORT,
};

const CLAIM: Bounds = Bounds { claims: 1, ..TWO };

/// For walks.
const LONG: Bounds = Bounds {
    nodes: 3,
    log: 40,
    items: 8,
    hellos: 10,
    claims: 8,
    forced: 4,
    restarts: 1,
    strict: true,
    times: Times {
        lease: 2,
        wait: 2,
        bound: 3,
    },
};

fn model(fault: Fault, bounds: Bounds) -> Follow {
    let judge = Judge::default();
    Follow {
        judge,
        fault,
        bounds,
    }
}

/// Searches to the end and finds nothing.
#[track_caller]
fn holds(fault: Fault, bounds: Bounds, least: usize) {
    let outcome = search(&mut model(fault, bounds), |_| true);
    outcome.holds(&bounds);
    let states = outcome.states;
    println!("{states} states of {bounds:?}");
    assert!(states > least, "{states}");
}

#[track_caller]
fn finds(fault: Fault, bounds: Bounds, wanted: fn(Violation) -> bool) {
    search(&mut model(fault, bounds), wanted).finds(&fault);
}

fn is_stale_owner(found: Violation) -> bool {
    matches!(found, Violation::StaleOwner(_))
}

fn is_stale_follower(found: Violation) -> bool {
    matches!(found, Violation::StaleFollower(_))
}

fn is_late_claim(found: Violation) -> bool {
    matches!(found, Violation::LateClaim(_))
}

#[test]
fn claims_hold() {
    let (log, claims) = (5, 2);
    let bounds = Bounds { log, claims, ..TWO };
    holds(Fault::None, bounds, 1_000_000);
    let (claims, forced) = (1, 1);
    let bounds = Bounds {
        claims,
        forced,
        ..TWO
    };
    holds(Fault::None, bounds, 400_000);
}

/// Their epochs may have no record but EPOCH and FAREWELL.
#[test]
fn claims_of_two_followers_hold() {
    let (lease, wait, bound) = (1, 1, 0);
    let bounds = Bounds {
        nodes: 3,
        claims: 2,
        times: Times { lease, wait, bound },
        ..TWO
    };
    holds(Fault::None, bounds, 1_000_000);
}

#[test]
fn followers_hold() {
    let (items, hellos) = (2, 1);
    let bounds = Bounds {
        items,
        hellos,
        ..TWO
    };
    holds(Fault::None, bounds, 150_000);
}

#[test]
fn strict_answers_hold() {
    let strict = true;
    holds(Fault::None, Bounds { strict, ..CLAIM }, 300_000);
}

#[test]
fn soak_three_nodes_that_follow_in_turn() {
    let (walks, length, seeds) = (200, 150, 5);
    let walks = Walks {
        walks,
        length,
        seeds,
    };
    walks_hold(&mut model(Fault::None, LONG), walks);
}

/// Otherwise they do not show what they are meant to.
#[test]
fn walks_come_by_faults() {
    let (walks, length, seeds) = (2000, 150, 1);
    let walks = Walks {
        walks,
        length,
        seeds,
    };
    for fault in [
        Fault::WaitsForLastEpoch,
        Fault::WritesAtOnce,
        Fault::FreshByArrival,
        Fault::RepeatsClaim,
    ] {
        let outcome = walk(&mut model(fault, LONG), 1, walks, |_| true);
        outcome.finds(&fault);
    }
}

#[test]
fn a_new_owner_that_waits_from_its_claim_answers_beside_the_old() {
    let forced = 1;
    finds(
        Fault::WaitsFromClaim,
        Bounds { forced, ..TWO },
        is_stale_owner,
    );
}

/// Whatever counts was received before such a claim was sent.
#[test]
fn to_wait_from_a_claim_with_n_is_enough() {
    holds(Fault::WaitsFromClaim, CLAIM, 80_000);
}

#[test]
fn a_new_owner_that_waits_for_the_newest_epoch_alone_answers_beside_one_before() {
    let bounds = Bounds {
        nodes: 3,
        claims: 2,
        ..TWO
    };
    finds(Fault::WaitsForLastEpoch, bounds, is_stale_owner);
}

#[test]
fn a_farewell_ends_the_answers_of_its_owner_alone() {
    let bounds = Bounds {
        log: 5,
        claims: 2,
        ..TWO
    };
    finds(Fault::FarewellEndsAll, bounds, is_stale_owner);
}

#[test]
fn what_a_new_owner_writes_at_once_is_missing_in_answers_of_the_old() {
    finds(Fault::WritesAtOnce, CLAIM, is_stale_owner);
}

#[test]
fn a_lease_from_the_last_sending_is_too_long() {
    finds(Fault::LeaseFromLast, CLAIM, is_stale_owner);
}

#[test]
fn an_owner_answers_nothing_once_it_sent_farewell() {
    finds(
        Fault::AnswersUntilFarewell,
        Bounds { log: 5, ..CLAIM },
        is_stale_owner,
    );
}

#[test]
fn what_is_shown_before_it_is_proven_vanishes() {
    let is_vanished = |found| matches!(found, Violation::Vanished(_));
    finds(Fault::ShowsUnproven, CLAIM, is_vanished);
}

#[test]
fn a_strict_answer_by_an_older_record_is_stale() {
    let strict = true;
    finds(
        Fault::StrictByOlder,
        Bounds { strict, ..CLAIM },
        is_stale_owner,
    );
}

#[test]
fn a_follower_that_is_fresh_by_arrival_is_stale() {
    finds(Fault::FreshByArrival, TWO, is_stale_follower);
}

#[test]
fn a_follower_that_is_fresh_from_receipt_is_stale() {
    let hellos = 1;
    finds(
        Fault::FreshFromReceipt,
        Bounds { hellos, ..TWO },
        is_stale_follower,
    );
}

#[test]
fn a_follower_that_takes_an_older_hello_for_its_newest_is_stale() {
    let hellos = 2;
    let bounds = Bounds { hellos, ..TWO };
    finds(Fault::IgnoresNonce, bounds, is_stale_follower);
}

#[test]
fn a_claim_without_n_is_late() {
    finds(Fault::NoNumber, CLAIM, is_late_claim);
}

/// A new owner may have appended nothing yet but its EPOCH, which has no number.
#[test]
fn a_claim_with_n_alone_is_late() {
    let claims = 2;
    let bounds = Bounds {
        nodes: 3,
        claims,
        ..TWO
    };
    finds(Fault::IgnoresAfter, bounds, is_late_claim);
}

#[test]
fn a_claim_that_is_repeated_is_late() {
    finds(Fault::RepeatsClaim, CLAIM, is_late_claim);
}

#[test]
fn a_claim_that_is_forgotten_leaves_the_tablet_to_nobody() {
    let is_nobody = |found| matches!(found, Violation::Nobody(_));
    finds(Fault::ForgetsClaim, CLAIM, is_nobody);
}
