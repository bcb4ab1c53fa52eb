//! All that can happen next. As in [`crate::model::follow`], a record may be appended at any later
//! time or never, and a node may read on at any time.

use super::state::{Node, Owner, World};
use super::{Adopt, Fault};
use crate::model::record::{Body, Items, Name, Named, Seen, Value, Verdict, may_count};

/// What happens.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "traces print the fields")]
pub(super) enum Step {
    Append {
        offset: usize,
        value: Value,
    },
    /// The node reads, and applies, the record.
    Read {
        node: usize,
        offset: u8,
    },
    /// The node loads a checkpoint; without, it begins with an empty database.
    Load {
        node: usize,
        named: Option<Named>,
    },
    /// The log was trimmed beyond what the node applied.
    Behind {
        node: usize,
    },
    Claim {
        node: usize,
    },
    Send {
        node: usize,
        body: Body,
    },
    /// The owner writes what it froze to files, and uploads them with those that it has.
    Upload {
        node: usize,
        named: Named,
        items: Items,
    },
    /// The owner trims the log.
    Trim {
        node: usize,
        begin: u8,
    },
    /// The owner deletes objects that nobody needs.
    Sweep {
        node: usize,
    },
    /// The process starts anew.
    Restart {
        node: usize,
    },
}

type Found = Vec<(Step, World)>;

/// The states one step behind `world`, whose log says `seen`.
pub(super) fn steps(model: &mut Adopt, world: &World, seen: &Seen) -> Found {
    let mut found = Vec::new();
    if world.log.len() < model.bounds.log {
        appends(model, world, seen, &mut found);
    }
    for (i, node) in world.nodes.iter().enumerate() {
        match node.next {
            None => loads(model.fault, world, seen, i, &mut found),
            Some(offset) if offset < world.begin => {
                found.push((Step::Behind { node: i }, with(world, i, node.anew())));
            }
            Some(offset) if usize::from(offset) < world.log.len() => {
                let then = read(model.fault, world, seen, i, offset);
                found.push((Step::Read { node: i, offset }, then));
            }
            Some(_) => {}
        }
        match (&node.owner, node.next) {
            (Some(owner), Some(next)) => {
                owns(model, (world, seen), i, (owner, next), &mut found);
            }
            (None, Some(next)) => found.extend(claim(model, (world, seen), i, next)),
            _ => {}
        }
        if world.restarts < model.bounds.restarts && node.next.is_some() {
            let mut then = with(world, i, node.anew());
            then.restarts += 1;
            found.push((Step::Restart { node: i }, then));
        }
    }
    found
}

fn with(world: &World, i: usize, node: Node) -> World {
    let mut then = world.clone();
    then.nodes[i] = node;
    then
}

fn appends(model: &mut Adopt, world: &World, seen: &Seen, found: &mut Found) {
    let offset = world.log.len();
    for &value in &world.flight {
        let mut then = world.clone();
        then.log.push(value);
        let (behind, _) = model.judge.judge(seen.end(), offset as u8, value);
        // A CHECKPOINT that never will count is appended too, and read.
        let matters = |value: Value| value.named().is_some() || may_count(behind, value);
        then.flight
            .retain(|&other| other != value && matters(other));
        found.push((Step::Append { offset, value }, then));
    }
}

fn read(fault: Fault, world: &World, seen: &Seen, i: usize, offset: u8) -> World {
    let mut then = world.clone();
    let node = &mut then.nodes[i];
    node.next = Some(offset + 1);
    let value = world.log[usize::from(offset)];
    match (seen.verdicts[usize::from(offset)], value) {
        (Verdict::Epoch, Value::Epoch { nonce, .. }) => {
            if node.owner.is_some() {
                // There is no way back to what counts: it starts anew.
                *node = node.anew();
            } else if node.claim.take() == Some(nonce) {
                node.owner = Some(Owner::new(offset, node.next_number()));
            }
        }
        (Verdict::Counts, Value::Owned { at, body }) => {
            let pending = node.owner.as_mut().and_then(|owner| owner.pending.take());
            match body {
                Body::Checkpoint(named) if pending.is_some() => publish(node, named),
                Body::Checkpoint(named) => {
                    let is_newer = node.named.is_none_or(|has| named.cut > has.cut);
                    // Without its object it is passed over, and what was frozen is kept.
                    if let Some(files) = node.files(fault, world, named.name)
                        && (is_newer || fault == Fault::AdoptsOlder)
                    {
                        node.adopt(named, files);
                    }
                }
                // The owner did so when it sent the record.
                _ if pending.is_some() => {}
                Body::Data(_) => node.live |= value.item(),
                Body::Cut => node.freeze(at.n),
                Body::Tick | Body::Farewell => {}
            }
        }
        (Verdict::Nothing, value) if fault == Fault::DropsUncounted => {
            let cut = value.named().map_or(0, |named| named.cut);
            node.frozen.retain(|frozen| frozen.0 > cut);
        }
        _ => {}
    }
    then
}

/// The owner's CHECKPOINT counts: its files have what it froze.
fn publish(node: &mut Node, named: Named) {
    let frozen = node.frozen.iter().filter(|(cut, _)| *cut <= named.cut);
    let files = frozen.fold(node.files, |files, (_, items)| files | items);
    node.adopt(named, files);
}

/// Any checkpoint that counts, is in the store and has the log behind its CUT: the node may be
/// shown an old end of the log.
fn loads(fault: Fault, world: &World, seen: &Seen, i: usize, found: &mut Found) {
    let empty = &world.nodes[i];
    if world.begin == 0 {
        let next = Some(0);
        let node = Node {
            next,
            ..empty.clone()
        };
        let named = None;
        found.push((Step::Load { node: i, named }, with(world, i, node)));
    }
    for (_, value) in world.counted(seen, world.begin, world.log.len() as u8) {
        if let Some(named) = value.named()
            && let Some(files) = empty.files(fault, world, named.name)
            && let Some(cut) = world.cut(seen, named.cut)
        {
            let node = Node {
                next: Some(cut + 1),
                named: Some(named),
                files,
                ..empty.clone()
            };
            let named = Some(named);
            found.push((Step::Load { node: i, named }, with(world, i, node)));
        }
    }
}

/// Claims without `n`: all that can be done with `n` can be done so.
fn claim(
    model: &Adopt,
    (world, seen): (&World, &Seen),
    i: usize,
    next: u8,
) -> Option<(Step, World)> {
    let node = &world.nodes[i];
    let after = seen.states[usize::from(next)].epoch?;
    if world.claims == model.bounds.claims || node.claim.is_some() {
        return None;
    }
    let mut then = world.clone();
    then.claims += 1;
    let (nonce, after, n) = (then.claims, Some(after as u8), None);
    then.send(seen, Value::Epoch { nonce, after, n });
    then.nodes[i].claim = Some(nonce);
    Some((Step::Claim { node: i }, then))
}

fn owns(
    model: &Adopt,
    (world, seen): (&World, &Seen),
    i: usize,
    (owner, next): (&Owner, u8),
    found: &mut Found,
) {
    let (node, bounds) = (&world.nodes[i], model.bounds);
    if owner.pending.is_none() {
        let data = (world.written < bounds.items).then_some(Body::Data(world.written));
        let cut = (world.cuts < bounds.cuts && node.live != 0).then_some(Body::Cut);
        let checkpoint = owner.uploaded.map(Body::Checkpoint);
        for body in data.into_iter().chain(cut).chain(checkpoint) {
            let at = seen.at(next);
            let value = Value::Owned { at, body };
            let mut then = world.clone();
            then.send(seen, value);
            let node = &mut then.nodes[i];
            node.live |= value.item();
            match body {
                Body::Data(_) => then.written += 1,
                Body::Cut => {
                    node.freeze(at.n);
                    then.cuts += 1;
                }
                _ => {}
            }
            let owner = then.nodes[i].owner.as_mut().expect("just looked at");
            owner.pending = Some(value);
            if Some(body) == checkpoint {
                owner.uploaded = None;
            }
            found.push((Step::Send { node: i, body }, then));
        }
        uploads(model, world, i, owner, found);
    }
    if let Some(named) = node.named {
        clean(model.fault, (world, seen), i, (owner, named), found);
    }
}

/// Files are uploaded once all in them is proven.
fn uploads(model: &Adopt, world: &World, i: usize, owner: &Owner, found: &mut Found) {
    let node = &world.nodes[i];
    if world.uploads == model.bounds.uploads {
        return;
    }
    let mut items = node.files;
    for &(cut, frozen) in &node.frozen {
        items |= frozen;
        let number = match model.fault {
            Fault::ReusesNumber => node.next_number(),
            _ => owner.number,
        };
        let epoch = match model.fault {
            Fault::ReusesName => 0,
            _ => owner.epoch,
        };
        let name = Name { epoch, number };
        let named = Named { name, cut };
        let mut then = world.clone();
        then.uploads += 1;
        then.put(name, items);
        then.nodes[i].write(model.fault.path(name), items);
        let owner = then.nodes[i].owner.as_mut().expect("just looked at");
        owner.number += 1;
        owner.uploaded = Some(named);
        found.push((
            Step::Upload {
                node: i,
                named,
                items,
            },
            then,
        ));
    }
}

/// The owner gives up what its newest checkpoint does not need, of its epoch and those before.
fn clean(
    fault: Fault,
    (world, seen): (&World, &Seen),
    i: usize,
    (owner, named): (&Owner, Named),
    found: &mut Found,
) {
    let begin = world.cut(seen, named.cut);
    if let Some(begin) = begin.filter(|&begin| begin > world.begin) {
        let mut then = world.clone();
        then.begin = begin;
        found.push((Step::Trim { node: i, begin }, then));
    }
    let pending = owner.pending.and_then(Value::named);
    let needed = [Some(named), pending, owner.uploaded];
    let is_needed = |name| {
        needed
            .into_iter()
            .flatten()
            .any(|needed| needed.name == name)
    };
    let may_go = |name: Name| name.epoch <= owner.epoch || fault == Fault::SweepsAll;
    let mut then = world.clone();
    then.store
        .retain(|&(name, _)| is_needed(name) || !may_go(name));
    found.push((Step::Sweep { node: i }, then));
}
