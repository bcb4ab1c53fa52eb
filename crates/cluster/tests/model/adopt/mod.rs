//! Checkpoints, and followers that adopt them (`SCALE.md`, section 9).
//!
//! Where the owner freezes what it will write to files, it appends CUT; whoever applies the log
//! freezes the same there. The owner uploads files under names that nobody used, then appends
//! CHECKPOINT; when it counts, whoever applies it takes over the files and drops what was frozen
//! up to the CUT that the checkpoint includes. A checkpoint that is older than the files of a
//! node says nothing new to it. A follower that claims goes on with what it has frozen.
//!
//! A node that was deposed, or started anew, still has the files that it wrote on its disk, and
//! does not fetch what it has under the same path.
//!
//! A checkpoint is one object here: all items that were written before its CUT.
//!
//! In every state: each node that loaded something shows what counts before the place up to which
//! it applied the log (an owner also what it sent), each item once; and the store has the object
//! that the newest CHECKPOINT names.

mod state;
mod steps;

use super::explore::{Model, Walks, search, walks_hold};
use super::record::{Judge, Name, Seen, Value};
use state::{Bounds, Violation, World};
use steps::{Step, steps};

/// What is wrong, on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A node drops what it froze at a CHECKPOINT, counted or not.
    DropsUncounted,
    /// A node takes over files that are older than its own.
    AdoptsOlder,
    /// The first checkpoint of an owner has the name that the owner before gave its next one.
    ReusesName,
    /// A checkpoint that is tried again has the name of the first try.
    ReusesNumber,
    /// The paths of files on the disk have no epoch.
    ReusesPath,
    /// An owner that does not know that it was deposed deletes objects of later epochs.
    SweepsAll,
}

impl Fault {
    /// The path of an object on the disk of a node.
    fn path(self, name: Name) -> Name {
        match self {
            Self::ReusesPath => Name { epoch: 0, ..name },
            _ => name,
        }
    }
}

/// The protocol, with a fault or without.
struct Adopt {
    judge: Judge,
    fault: Fault,
    bounds: Bounds,
}

impl Model for Adopt {
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

    /// In a walk budgets last.
    fn weight(&self, step: Step) -> u64 {
        match step {
            Step::Claim { .. } | Step::Restart { .. } | Step::Sweep { .. } => 1,
            _ => 8,
        }
    }

    fn violations(&mut self, world: &World, seen: &Seen) -> Vec<Violation> {
        let mut found = Vec::new();
        for (node, has) in world.nodes.iter().enumerate() {
            let Some(next) = has.next else {
                continue;
            };
            let pending = has.owner.as_ref().and_then(|owner| owner.pending);
            let counted = world.counted(seen, 0, next);
            let wanted = counted.fold(pending.map_or(0, Value::item), |items, (_, value)| {
                items | value.item()
            });
            let (mut shown, mut twice) = (has.files, 0);
            let frozen = has.frozen.iter().map(|(_, items)| *items);
            for items in frozen.chain([has.live]) {
                twice |= shown & items;
                shown |= items;
            }
            let (missing, new) = (wanted & !shown, shown & !wanted);
            let wrong = [
                (
                    missing,
                    Violation::Missing {
                        node,
                        items: missing,
                    },
                ),
                (twice, Violation::Twice { node, items: twice }),
                (new, Violation::TooNew { node, items: new }),
            ];
            let wrong = wrong.into_iter().filter(|(items, _)| *items != 0);
            found.extend(wrong.map(|(_, violation)| violation));
        }
        let mut counted = world.counted(seen, 0, world.log.len() as u8).rev();
        let newest = counted.find_map(|(_, value)| value.named());
        let gone = newest.filter(|newest| world.object(newest.name).is_none());
        found.extend(gone.map(|gone| Violation::Gone(gone.name)));
        found
    }
}

/// Two owners, each of which publishes.
const TWO: Bounds = Bounds {
    nodes: 2,
    log: 8,
    items: 2,
    cuts: 2,
    uploads: 2,
    claims: 1,
    restarts: 1,
};

/// For walks.
const LONG: Bounds = Bounds {
    nodes: 3,
    log: 60,
    items: 8,
    cuts: 12,
    uploads: 20,
    claims: 6,
    restarts: 4,
};

fn model(fault: Fault, bounds: Bounds) -> Adopt {
    let judge = Judge::default();
    Adopt {
        judge,
        fault,
        bounds,
    }
}

#[track_caller]
fn finds(fault: Fault, bounds: Bounds, wanted: fn(Violation) -> bool) {
    search(&mut model(fault, bounds), wanted).finds(&fault);
}

#[test]
fn two_owners_hold() {
    let outcome = search(&mut model(Fault::None, TWO), |_| true);
    outcome.holds(&TWO);
    assert!(outcome.states > 200_000, "{}", outcome.states);
}

#[test]
fn soak_three_nodes_that_publish_in_turn() {
    let (walks, length, seeds) = (100, 200, 5);
    let walks = Walks {
        walks,
        length,
        seeds,
    };
    walks_hold(&mut model(Fault::None, LONG), walks);
}

#[test]
fn a_frozen_head_dropped_before_its_checkpoint_counts_is_missing() {
    finds(Fault::DropsUncounted, TWO, |found| {
        matches!(found, Violation::Missing { .. })
    });
}

#[test]
fn an_older_checkpoint_takes_items_away() {
    finds(Fault::AdoptsOlder, TWO, |found| {
        matches!(found, Violation::Missing { .. })
    });
}

#[test]
fn a_first_checkpoint_that_reuses_a_name_has_other_items() {
    finds(Fault::ReusesName, TWO, |found| {
        matches!(found, Violation::Missing { .. })
    });
}

#[test]
fn a_checkpoint_that_is_tried_again_under_its_name_has_other_items() {
    finds(Fault::ReusesNumber, TWO, |found| {
        matches!(found, Violation::Missing { .. })
    });
}

#[test]
fn a_path_without_epoch_has_the_items_of_another_owner() {
    finds(Fault::ReusesPath, TWO, |found| {
        matches!(found, Violation::Missing { .. })
    });
}

#[test]
fn an_owner_that_sweeps_later_epochs_takes_the_newest_checkpoint_away() {
    finds(Fault::SweepsAll, TWO, |found| {
        matches!(found, Violation::Gone(_))
    });
}
