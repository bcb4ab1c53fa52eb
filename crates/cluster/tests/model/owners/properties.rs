//! The properties of each state.

use super::reader::{Fault, Reader, Seen};
use super::state::{Bounds, Item, Life, Told, Value, World};
use super::steps::{Step, steps};
use crate::model::explore::Model;
use std::collections::HashSet;

/// What must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// Acknowledged under a number, and a later scan does not count it as the one of that number.
    Lost(Item),
    /// Counted more than once.
    Twice(Item),
    /// A client was told that it never will count, and it does.
    DeniedCounts(Item),
    /// Acknowledged under the number of another that is acknowledged.
    SameNumber(Item),
    /// Counted though one that was sent to the same owner before it does not count before it.
    OutOfOrder(Item),
    /// Counted behind the EPOCH of another owner.
    OfDeposed(Item),
    /// A scan of the log trimmed to this record says something else.
    TrimmedDiffers(Item),
    /// An owner found a record of its epoch that it had not appended.
    Stopped(u8),
    /// A claim of this life deposed twice: an own retry was a rival.
    ClaimedTwice(u8),
}

impl Violation {
    /// Of what becomes of data: all but [`Violation::ClaimedTwice`].
    pub(crate) fn is_of_data(self) -> bool {
        !matches!(self, Self::ClaimedTwice(_))
    }
}

/// The protocol of owners, with a fault or without, and what a search came by.
pub(crate) struct Owners {
    reader: Reader,
    bounds: Bounds,
    pub(crate) count: Count,
}

/// How many states there are in which...
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    /// two lives acknowledged something.
    pub(crate) two_acked: usize,
    /// an owner was deposed and denied something, and another acknowledged.
    pub(crate) denied: usize,
    /// an acknowledged record has a copy that does not count.
    pub(crate) doubled: usize,
    /// a life found that it was deposed.
    pub(crate) deposed: usize,
}

impl Owners {
    pub(crate) fn new(fault: Fault, bounds: Bounds) -> Self {
        Self {
            reader: Reader::new(fault),
            bounds,
            count: Count::default(),
        }
    }
}

impl Model for Owners {
    type World = World;
    type Seen = Seen;
    type Step = Step;
    type Violation = Violation;

    fn start(&self) -> World {
        World::START
    }

    fn look(&mut self, world: &World) -> Seen {
        self.reader.scan(world)
    }

    fn steps(&mut self, world: &World, seen: &Seen) -> Vec<(Step, World)> {
        steps(&mut self.reader, self.bounds, world, seen)
    }

    fn violations(&mut self, world: &World, seen: &Seen) -> Vec<Violation> {
        let mut found = Vec::new();
        told_and_counted(world, seen, &mut found);
        order(seen, &mut found);
        trimmed(&mut self.reader, world, seen, &mut found);
        lives(world, seen, &mut found);
        found
    }

    fn note(&mut self, world: &World, seen: &Seen) {
        let count = &mut self.count;
        let told = |life, what: fn(Told) -> bool| {
            let mut sent = world.sent();
            sent.any(|(item, sent)| item.life == life && what(sent.told))
        };
        let lives = 0..world.lives.len() as u8;
        let acked: Vec<u8> = lives
            .clone()
            .filter(|&life| told(life, |told| matches!(told, Told::Acked(_))))
            .collect();
        let mut denied = lives.filter(|&life| told(life, |told| told == Told::Denied));
        count.deposed += usize::from(world.lives.contains(&Life::Deposed));
        count.two_acked += usize::from(acked.len() > 1);
        count.denied += usize::from(denied.any(|life| acked.iter().any(|&other| other != life)));
        let doubled = seen.counted.iter().any(|counted| {
            let mut log = world.log();
            let value = log.nth(usize::from(counted.offset));
            acked.contains(&counted.item.life) && log.any(|later| Some(later) == value)
        });
        count.doubled += usize::from(doubled);
    }
}

/// What clients were told is what the log says.
fn told_and_counted(world: &World, seen: &Seen, found: &mut Vec<Violation>) {
    let mut numbers = HashSet::new();
    for (item, sent) in world.sent() {
        let places = (0_u8..).zip(&seen.counted);
        let mut places = places.filter_map(|(n, one)| (one.item == item).then_some(n));
        let counted = places.next();
        if places.next().is_some() {
            found.push(Violation::Twice(item));
        }
        match (sent.told, counted) {
            (Told::Acked(n), _) if counted != Some(n) => found.push(Violation::Lost(item)),
            (Told::Denied, Some(_)) => found.push(Violation::DeniedCounts(item)),
            _ => {}
        }
        if matches!(sent.told, Told::Acked(n) if !numbers.insert(n)) {
            found.push(Violation::SameNumber(item));
        }
    }
}

/// Each record that counts is of the owner there, which appended all before it.
fn order(seen: &Seen, found: &mut Vec<Violation>) {
    for (index, one) in (0..).zip(&seen.counted) {
        let item = one.item;
        let before = seen.counted[..index].iter();
        let of_owner = before.filter(|other| other.item.life == item.life).count();
        if one.owner != Some(item.life) {
            found.push(Violation::OfDeposed(item));
        }
        if of_owner != usize::from(item.k) {
            found.push(Violation::OutOfOrder(item));
        }
    }
}

/// The log can be trimmed to each record that counts and is no EPOCH.
fn trimmed(reader: &mut Reader, world: &World, seen: &Seen, found: &mut Vec<Violation>) {
    for (begin, value) in (0_u8..).zip(world.log()) {
        let counts = seen.counted.iter().any(|one| one.offset == begin);
        let item = match value {
            Value::Data { item, .. } if counts || reader.fault == Fault::TrimsAnywhere => item,
            _ => continue,
        };
        let rest = reader.scan_from(world, begin);
        let counted = seen.counted.iter().filter(|one| one.offset >= begin);
        let epochs = seen.epochs.iter().filter(|epoch| epoch.offset >= begin);
        let same = rest.states[..] == seen.states[usize::from(begin)..]
            && counted
                .map(|one| one.offset)
                .eq(rest.counted.iter().map(|one| one.offset))
            && epochs.eq(&rest.epochs);
        if !same {
            found.push(Violation::TrimmedDiffers(item));
        }
    }
}

/// No life is stopped, and each deposes once.
fn lives(world: &World, seen: &Seen, found: &mut Vec<Violation>) {
    for (life, state) in (0_u8..).zip(&world.lives) {
        let epochs = seen.epochs.iter().filter(|epoch| epoch.life == life);
        if *state == Life::Stopped {
            found.push(Violation::Stopped(life));
        }
        if epochs.count() > 1 {
            found.push(Violation::ClaimedTwice(life));
        }
    }
}
