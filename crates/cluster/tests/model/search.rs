//! Breadth-first search of all states within bounds, and the properties of each.

use super::reader::{Fault, Reader, Seen};
use super::state::{Bounds, Item, Life, Told, World};
use super::steps::{Step, steps};
use std::collections::HashSet;
use std::fmt;

/// What must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// Acknowledged, and a later scan does not count it.
    Lost(Item),
    /// Counted more than once.
    Twice(Item),
    /// A client was told that it never will count, and it does.
    DeniedCounts(Item),
    /// Acknowledged under the number of another that is acknowledged.
    SameNumber(Item),
    /// Acknowledged under a number and counted under another.
    Misplaced(Item),
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

/// Which properties are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Properties {
    /// All.
    All,
    /// What becomes of data: all but [`Violation::ClaimedTwice`].
    OfData,
    /// What clients see: what they were told is what the log says.
    OfClients,
}

/// What a search found.
pub(crate) struct Outcome {
    pub(crate) states: usize,
    /// States in which two lives acknowledged something.
    pub(crate) two_acked: usize,
    /// States in which an owner was deposed and denied something, and another acknowledged.
    pub(crate) denied: usize,
    /// States in which an acknowledged record has a copy that does not count.
    pub(crate) doubled: usize,
    /// States in which a life found that it was deposed.
    pub(crate) deposed: usize,
    /// The first violation, and a shortest way to it.
    pub(crate) violation: Option<(Violation, Trace)>,
}

/// Steps from the start.
pub(crate) struct Trace(Vec<Step>);

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| writeln!(f, "  {step:?}"))
    }
}

/// Explores all states until one violates a property.
pub(crate) fn search(fault: Fault, bounds: Bounds, properties: Properties) -> Outcome {
    let mut reader = Reader::new(fault);
    let mut known = HashSet::from([World::START]);
    // In the order of discovery: each with the one before it and the step between.
    let mut queue: Vec<(World, Option<(usize, Step)>)> = vec![(World::START, None)];
    let mut outcome = Outcome {
        states: 0,
        two_acked: 0,
        denied: 0,
        doubled: 0,
        deposed: 0,
        violation: None,
    };
    while let Some((world, _)) = queue.get(outcome.states).copied() {
        let seen = reader.scan(&world);
        let violation = violation(&mut reader, &world, &seen, properties);
        if let Some(violation) = violation {
            let trace = trace(&queue, outcome.states);
            outcome.violation = Some((violation, trace));
            return outcome;
        }
        outcome.note(&world, &seen);
        for (step, then) in steps(&mut reader, bounds, &world, &seen) {
            if known.insert(then) {
                queue.push((then, Some((outcome.states, step))));
            }
        }
        outcome.states += 1;
    }
    outcome
}

fn trace(queue: &[(World, Option<(usize, Step)>)], mut index: usize) -> Trace {
    let mut steps = Vec::new();
    while let Some((before, step)) = queue[index].1 {
        steps.push(step);
        index = before;
    }
    steps.reverse();
    Trace(steps)
}

impl Outcome {
    fn note(&mut self, world: &World, seen: &Seen) {
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
        self.deposed += usize::from(world.lives.contains(&Life::Deposed));
        self.two_acked += usize::from(acked.len() > 1);
        self.denied += usize::from(denied.any(|life| acked.iter().any(|&other| other != life)));
        let doubled = seen.counted.iter().any(|counted| {
            let mut log = world.log();
            let value = log.nth(usize::from(counted.offset));
            acked.contains(&counted.item.life) && log.any(|later| Some(later) == value)
        });
        self.doubled += usize::from(doubled);
    }
}

fn violation(
    reader: &mut Reader,
    world: &World,
    seen: &Seen,
    properties: Properties,
) -> Option<Violation> {
    let told = told_and_counted(world, seen);
    if properties == Properties::OfClients {
        return told;
    }
    told.or_else(|| order(seen))
        .or_else(|| trimmed(reader, world, seen))
        .or_else(|| lives(world, seen, properties))
}

/// What clients were told is what the log says.
fn told_and_counted(world: &World, seen: &Seen) -> Option<Violation> {
    let mut numbers = HashSet::new();
    world.sent().find_map(|(item, sent)| {
        let places = (0_u8..).zip(&seen.counted);
        let mut places = places.filter_map(|(n, one)| (one.item == item).then_some(n));
        let counted = places.next();
        if places.next().is_some() {
            return Some(Violation::Twice(item));
        }
        match (sent.told, counted) {
            (Told::Acked(n), _) if !numbers.insert(n) => Some(Violation::SameNumber(item)),
            (Told::Acked(_), None) => Some(Violation::Lost(item)),
            (Told::Acked(n), Some(place)) if n != place => Some(Violation::Misplaced(item)),
            (Told::Denied, Some(_)) => Some(Violation::DeniedCounts(item)),
            _ => None,
        }
    })
}

/// Each record that counts is of the owner there, which appended all before it.
fn order(seen: &Seen) -> Option<Violation> {
    (0..).zip(&seen.counted).find_map(|(index, one)| {
        let item = one.item;
        let before = seen.counted[..index].iter().rev();
        let of_owner = before.filter(|other| other.item.life == item.life).count();
        if one.owner != Some(item.life) {
            return Some(Violation::OfDeposed(item));
        }
        (of_owner != usize::from(item.k)).then_some(Violation::OutOfOrder(item))
    })
}

/// The log can be trimmed to each record that counts and is no EPOCH.
fn trimmed(reader: &mut Reader, world: &World, seen: &Seen) -> Option<Violation> {
    (0..).zip(&seen.counted).find_map(|(index, one)| {
        let rest = reader.scan_from(world, one.offset);
        let offsets = |of: &Seen| -> Vec<u8> { of.counted.iter().map(|one| one.offset).collect() };
        let epochs = seen.epochs.iter().filter(|epoch| epoch.offset > one.offset);
        let same = rest.states[..] == seen.states[usize::from(one.offset)..]
            && offsets(&rest)[..] == offsets(seen)[index..]
            && epochs.eq(&rest.epochs);
        (!same).then_some(Violation::TrimmedDiffers(one.item))
    })
}

/// No life is stopped, and each deposes once.
fn lives(world: &World, seen: &Seen, properties: Properties) -> Option<Violation> {
    (0_u8..).zip(&world.lives).find_map(|(life, state)| {
        let epochs = seen.epochs.iter().filter(|epoch| epoch.life == life);
        if *state == Life::Stopped {
            return Some(Violation::Stopped(life));
        }
        (epochs.count() > 1 && properties == Properties::All)
            .then_some(Violation::ClaimedTwice(life))
    })
}
