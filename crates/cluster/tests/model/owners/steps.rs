//! All that can happen next.
//!
//! A request may be delivered late, again or never: whatever was sent once can be appended at any
//! later time, any number of times, so to send the same bytes again is no step of its own. An
//! answer may be that for any copy, and may be lost: then it is no step. A life may be killed at
//! any time: then it takes no further step, and what it sent is still on its way.

use super::reader::{Fault, Reader, Seen};
use super::state::{At, Bounds, Item, LOG_MAX, Life, Owner, Told, Value, World};
use latewood_cluster::scan::Verdict;

/// What happens.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "traces print the fields")]
pub(crate) enum Step {
    /// The record is appended.
    Append { offset: usize, value: Value },
    /// The life reads its EPOCH at the offset, or is told of it: it is the owner.
    Own { life: u8, epoch: u8 },
    /// The owner appends what a client sends.
    Issue { item: Item, at: At },
    /// Kafka answers the owner with an offset.
    Answer { item: Item, offset: u8 },
    /// The owner reads on to the end that it is shown.
    Audit { item: Item, end: u8 },
}

/// The states one step behind `world`, whose log says `seen`.
pub(crate) fn steps(
    reader: &mut Reader,
    bounds: Bounds,
    world: &World,
    seen: &Seen,
) -> Vec<(Step, World)> {
    let mut found = Vec::new();
    let offset = seen.states.len() - 1;
    if offset < bounds.log.min(LOG_MAX) {
        let values = in_flight(bounds, world, seen).into_iter();
        found.extend(values.map(|value| (Step::Append { offset, value }, world.append(value))));
    }
    for (life, state) in (0..bounds.lives).zip(world.lives) {
        let owner = match state {
            Life::Claiming => {
                own(reader.fault, world, seen, life, &mut found);
                continue;
            }
            Life::Owner(owner) => owner,
            Life::Deposed | Life::Stopped => continue,
        };
        if owner.pending {
            answers(reader, world, (life, owner), &mut found);
            audits(reader, world, (life, owner), &mut found);
        }
        let free = !owner.pending || reader.fault == Fault::ReplacesUnproven;
        if free && owner.issued < bounds.items {
            found.push(issue(world, life, owner));
        }
    }
    found
}

/// What may be appended now: items as they were sent, and for each life an EPOCH for every epoch
/// that it may have believed in, which is that of any beginning of the log without its own
/// EPOCH: a read may answer an old end. Lives are alike, so they claim in the order of numbers.
fn in_flight(bounds: Bounds, world: &World, seen: &Seen) -> Vec<Value> {
    let claimed = |life| {
        let mut log = world.log();
        log.any(|value| matches!(value, Value::Epoch { life: by, .. } if by == life))
    };
    let mut values = Vec::new();
    for life in (0..bounds.lives).filter(|&life| life == 0 || claimed(life - 1)) {
        let known = seen.epochs.iter().take_while(|epoch| epoch.life != life);
        let known = known.map(|epoch| Some(epoch.offset));
        let afters = [None].into_iter().chain(known);
        values.extend(afters.map(|after| Value::Epoch { life, after }));
    }
    let sent = world.sent();
    values.extend(sent.map(|(item, sent)| Value::Data { item, at: sent.at }));
    values
}

/// The life reads from the beginning of the log to its EPOCH, wherever it counts: of two, the
/// first may be trimmed.
fn own(fault: Fault, world: &World, seen: &Seen, life: u8, found: &mut Vec<(Step, World)>) {
    for (epoch, value) in (0_u8..).zip(world.log()) {
        let own = matches!(value, Value::Epoch { life: by, .. } if by == life);
        let counts = seen.epochs.iter().any(|one| one.offset == epoch);
        if !own || !(counts || fault == Fault::OwnsUnproven) {
            continue;
        }
        let end = usize::from(epoch) + 1;
        let begin = match fault {
            Fault::RecoversBeginning => 0,
            _ => end,
        };
        for mut state in seen.states[begin..=end].iter().copied() {
            state.epoch = Some(u64::from(epoch));
            let owner = Owner {
                next: epoch + 1,
                at: At::from(state),
                issued: 0,
                pending: false,
            };
            let then = world.with(life, Life::Owner(owner));
            found.push((Step::Own { life, epoch }, then));
        }
    }
}

/// A client sends the owner an item, and it appends it behind all that it knows.
fn issue(world: &World, life: u8, owner: Owner) -> (Step, World) {
    let (k, at) = (owner.issued, owner.at);
    let item = Item { life, k };
    let owner = Owner {
        issued: k + 1,
        pending: true,
        ..owner
    };
    let then = world.with(life, Life::Owner(owner));
    let then = then.with_sent(item, at, Told::Nothing);
    (Step::Issue { item, at }, then)
}

/// The one that waits, and its bytes.
fn pending(world: &World, life: u8, owner: Owner) -> (Item, Value) {
    let k = owner.issued - 1;
    let item = Item { life, k };
    let sent = world.sent_of(item).expect("what is pending was sent");
    (item, Value::Data { item, at: sent.at })
}

/// The owner tells its client that `item` counts: it read it, at the offset before `next`.
fn acked(world: &World, item: Item, owner: Owner, next: u8, at: At) -> World {
    let before = owner.at;
    let owner = Owner {
        next,
        at,
        pending: false,
        ..owner
    };
    let then = world.with(item.life, Life::Owner(owner));
    then.with_sent(item, before, Told::Acked(before.n))
}

/// The offset behind the newest record known means that nothing came between. Any other says no
/// more than no answer.
fn answers(
    reader: &mut Reader,
    world: &World,
    (life, owner): (u8, Owner),
    found: &mut Vec<(Step, World)>,
) {
    let (item, value) = pending(world, life, owner);
    for (offset, appended) in (0_u8..).zip(world.log()) {
        let believed = offset == owner.next || reader.fault == Fault::AcksAtAnyOffset;
        if appended == value && believed {
            let (behind, _) = reader.judge(owner.at.state(), offset, value);
            let next = owner.next.max(offset + 1);
            let then = acked(world, item, owner, next, At::from(behind));
            found.push((Step::Answer { item, offset }, then));
        }
    }
}

/// The owner reads on to any end, as an old one may be shown. Where it finds neither its record
/// nor an EPOCH it sends the same bytes again.
fn audits(
    reader: &mut Reader,
    world: &World,
    (life, owner): (u8, Owner),
    found: &mut Vec<(Step, World)>,
) {
    let (item, value) = pending(world, life, owner);
    let denied = |life| {
        let then = world.with(item.life, life);
        then.with_sent(item, owner.at, Told::Denied)
    };
    if reader.fault == Fault::TakesAbsenceForProof {
        let end = owner.next;
        found.push((Step::Audit { item, end }, denied(Life::Deposed)));
    }
    let mut state = owner.at.state();
    let unread = (0_u8..).zip(world.log()).skip(usize::from(owner.next));
    for (offset, read) in unread {
        let end = offset + 1;
        let (behind, verdict) = reader.judge(state, offset, read);
        state = behind;
        let then = match verdict {
            Verdict::Counts { .. } if read == value => {
                Some(acked(world, item, owner, end, At::from(behind)))
            }
            Verdict::Counts { .. } => Some(world.with(life, Life::Stopped)),
            Verdict::Epoch(_) => Some(denied(Life::Deposed)),
            _ => None,
        };
        let step = Step::Audit { item, end };
        if let Some(then) = then {
            return found.push((step, then));
        }
        let owner = Owner { next: end, ..owner };
        found.push((step, world.with(life, Life::Owner(owner))));
    }
}
