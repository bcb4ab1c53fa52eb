//! All that can happen next.
//!
//! A record may be appended at any time after it was sent, or never; a node may read on at any
//! time, so whatever it knows may be old; a node that takes no step any more is dead. Copies of a
//! record that counts or that lost never count (`owners`), so they are not appended.
//!
//! An answer of Kafka with the offset behind the newest record known is the same as to read the
//! own record there, and any other leads to an audit, which reads on: so both are [`Step::Read`].

use super::Fault;
use super::Follow;
use super::state::{
    Answer, Bounds, Claim, Decided, Entry, Hello, Node, Owner, Pending, Strict, Violation, World,
};
use crate::model::record::{Body, Items, Seen, Value, Verdict, may_count};

/// What happens.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "traces print the fields")]
pub(super) enum Step {
    /// A tick passes.
    Pass,
    Append {
        offset: usize,
        value: Value,
    },
    /// The node reads, and applies, the record; if that is its EPOCH, it owns the tablet or gives
    /// it up.
    Read {
        node: usize,
        offset: u8,
    },
    /// The follower sends HELLO.
    Hello {
        node: u8,
        k: u8,
    },
    /// The follower claims, or an operator at it.
    Claim {
        node: usize,
        claim: Value,
    },
    /// The follower forgets its claim.
    Forget {
        node: usize,
    },
    /// The owner sends a record.
    Send {
        node: usize,
        body: Body,
    },
    /// The owner sends the same bytes again.
    Again {
        node: usize,
    },
    /// A client asks the node: that is what it is shown now, or once the pending record is proven.
    Ask {
        node: usize,
        items: Items,
    },
    /// A client asks the owner for a strict answer.
    AskStrict {
        node: usize,
    },
    /// The process starts anew.
    Restart {
        node: usize,
    },
}

type Found = Vec<(Step, World)>;

/// The states one step behind `world`, whose log says `seen`.
pub(super) fn steps(model: &mut Follow, world: &World, seen: &Seen) -> Found {
    let mut found = Vec::new();
    if world.broken.is_some() {
        return found;
    }
    let mut later = world.clone();
    later.pass(model.bounds.times);
    found.push((Step::Pass, later));
    if world.log.len() < model.bounds.log {
        appends(model, world, seen, &mut found);
    }
    for (i, node) in world.nodes.iter().enumerate() {
        let offset = node.next;
        if usize::from(offset) < world.log.len() {
            let thens = read(model, world, seen, i).into_iter();
            found.extend(thens.map(|then| (Step::Read { node: i, offset }, then)));
        }
        match &node.owner {
            Some(owner) => owns(model, (world, seen), i, owner, &mut found),
            None => follows(model, (world, seen), i, node, &mut found),
        }
        if world.restarts < model.bounds.restarts {
            let mut then = world.clone();
            then.restarts += 1;
            then.nodes[i] = Node::new(model.bounds.times);
            for decided in &mut then.decided {
                decided.by.take_if(|by| usize::from(*by) == i);
            }
            found.push((Step::Restart { node: i }, then));
        }
    }
    found
}

fn appends(model: &mut Follow, world: &World, seen: &Seen, found: &mut Found) {
    let offset = world.log.len();
    for &value in &world.flight {
        let mut then = world.clone();
        let is_data = value.item() != 0;
        let age = if is_data {
            0
        } else {
            model.bounds.times.bound + 1
        };
        then.log.push(Entry { value, age });
        let (behind, verdict) = model.judge.judge(seen.end(), offset as u8, value);
        if let (Verdict::Epoch, Value::Epoch { nonce, .. }) = (verdict, value)
            && let Some(at) = world.decided[usize::from(nonce)].at
            && at != seen.at(offset as u8)
        {
            then.broken = Some(Violation::LateClaim(nonce));
        }
        then.flight.retain(|&other| other != value);
        for other in &mut then.flight {
            if let Value::Epoch { after, .. } = other
                && model.fault == Fault::IgnoresAfter
            {
                *after = behind.epoch.map(|epoch| epoch as u8);
            }
        }
        then.flight.retain(|&other| may_count(behind, other));
        found.push((Step::Append { offset, value }, then));
    }
}

/// Mostly one state; two where the node may choose.
fn read(model: &Follow, world: &World, seen: &Seen, i: usize) -> Vec<World> {
    let mut then = world.clone();
    let node = &mut then.nodes[i];
    let offset = usize::from(node.next);
    node.next += 1;
    let value = world.log[offset].value;
    match (seen.verdicts[offset], value) {
        (Verdict::Hello, Value::Hello { node: by, k }) => {
            if let Some(hello) = node.hello
                && usize::from(by) == i
                && (hello.k == k || model.fault == Fault::IgnoresNonce)
            {
                node.hello = None;
                node.fresh = match model.fault {
                    Fault::FreshFromReceipt => 0,
                    _ => hello.age,
                };
            }
        }
        (Verdict::Epoch, Value::Epoch { nonce, .. }) => {
            return read_epoch(model, then, seen, i, nonce);
        }
        (Verdict::Counts, _) => read_counted(model, (&mut then, seen), i, value),
        _ => {}
    }
    vec![then]
}

/// An EPOCH counts: the owner before is deposed, and if the claim is the node's own, it is the
/// owner or gives the tablet up.
fn read_epoch(model: &Follow, mut then: World, seen: &Seen, i: usize, nonce: u8) -> Vec<World> {
    let times = model.bounds.times;
    let node = &mut then.nodes[i];
    let offset = node.next - 1;
    node.owner = None;
    node.before = node.heard;
    // An owner may answer from the sending of its EPOCH on, without any other record.
    node.heard = match model.fault {
        Fault::WaitsForLastEpoch => times.wait,
        _ => 0,
    };
    let claim = node.claim.take();
    let Some(claim) = claim.filter(|claim| claim.nonce == nonce) else {
        if then.decided[usize::from(nonce)].by == Some(i as u8) {
            then.broken = Some(Violation::Nobody(nonce));
        }
        if let Some(claim) = claim {
            lost(model, (&mut then, seen), i, claim);
        }
        return vec![then];
    };
    if model.fault == Fault::WaitsFromClaim {
        node.before = claim.age.min(times.wait);
    }
    node.owner = Some(Owner::new(claim.age.min(times.lease)));
    let mut gives_up = then.clone();
    let at = seen.at(offset + 1);
    let body = Body::Farewell;
    send((&mut gives_up, seen), i, Value::Owned { at, body });
    vec![then, gives_up]
}

/// The claim can count no more.
fn lost(model: &Follow, (then, seen): (&mut World, &Seen), i: usize, claim: Claim) {
    if model.fault != Fault::RepeatsClaim || !claim.automatic {
        return;
    }
    let at = seen.at(then.nodes[i].next);
    let nonce = claim.nonce;
    let (after, n) = (Some(at.epoch), Some(at.n));
    then.send(seen, Value::Epoch { nonce, after, n });
    then.nodes[i].claim = Some(claim);
}

/// A record of the owner counts, which may be this node.
fn read_counted(model: &Follow, (then, seen): (&mut World, &Seen), i: usize, value: Value) {
    let times = model.bounds.times;
    let node = &mut then.nodes[i];
    if value.item() != 0 && model.fault != Fault::WritesAtOnce {
        // Its owner waited for the leases before its own. So does who names a checkpoint.
        node.before = times.wait;
    }
    if value.is_farewell() {
        // It ends the answers of this owner. Those before it may go on under their leases.
        if model.fault == Fault::FarewellEndsAll {
            node.before = times.wait;
        }
        node.heard = node.before;
    } else {
        node.heard = 0;
    }
    if model.fault == Fault::FreshByArrival {
        node.fresh = 0;
    }
    if let Some(claim) = node.claim.take_if(|claim| claim.automatic) {
        return lost(model, (then, seen), i, claim);
    }
    let Some(owner) = &mut node.owner else {
        return;
    };
    let Some(proven) = owner.pending.take_if(|pending| pending.value == value) else {
        return;
    };
    owner.lease = proven.age;
    let parked = owner.parked.take();
    let strict = owner.strict.take_if(|strict| strict.sent);
    let next = node.next;
    if value.is_farewell() {
        node.owner = None;
    }
    let items = then.counted(seen, next, None);
    then.acked |= value.item();
    then.known |= value.item();
    let strict = strict.map(|Strict { floor, .. }| Answer { floor, items });
    for answer in parked.into_iter().chain(strict) {
        answered(then, i, answer);
    }
}

fn answered(then: &mut World, i: usize, answer: Answer) {
    if answer.floor & !answer.items != 0 {
        then.broken = Some(Violation::StaleOwner(i as u8));
    }
    then.known |= answer.items;
}

fn send((then, seen): (&mut World, &Seen), i: usize, value: Value) {
    then.send(seen, value);
    let owner = then.nodes[i].owner.as_mut().expect("only owners send");
    owner.pending = Some(Pending { value, age: 0 });
    if let Some(strict) = &mut owner.strict {
        strict.sent = true;
    }
    owner.leaving = value.is_farewell();
}

fn owns(
    model: &Follow,
    (world, seen): (&World, &Seen),
    i: usize,
    owner: &Owner,
    found: &mut Found,
) {
    let times = model.bounds.times;
    let node = &world.nodes[i];
    let waited = node.before >= times.wait;
    if owner.pending.is_none() {
        let at = seen.at(node.next);
        let data = Body::Data(world.written);
        let may_write = waited || model.fault == Fault::WritesAtOnce;
        let data = (may_write && world.written < model.bounds.items).then_some(data);
        for body in [Body::Tick, Body::Farewell].into_iter().chain(data) {
            let mut then = world.clone();
            then.written += u8::from(Some(body) == data);
            send((&mut then, seen), i, Value::Owned { at, body });
            found.push((Step::Send { node: i, body }, then));
        }
    } else if model.fault == Fault::LeaseFromLast {
        let mut then = world.clone();
        let pending = then.nodes[i]
            .owner
            .as_mut()
            .and_then(|owner| owner.pending.as_mut());
        pending.expect("just looked at").age = 0;
        found.push((Step::Again { node: i }, then));
    }
    let leaving = owner.leaving && model.fault != Fault::AnswersUntilFarewell;
    if waited && owner.lease < times.lease && !leaving {
        found.push(ask_owner(model, (world, seen), i, owner));
    }
    if model.bounds.strict && owner.strict.is_none() && !owner.leaving {
        let mut then = world.clone();
        let sent = owner.pending.is_some() && model.fault == Fault::StrictByOlder;
        let strict = Strict {
            floor: world.known,
            sent,
        };
        then.nodes[i].owner.as_mut().expect("just looked at").strict = Some(strict);
        found.push((Step::AskStrict { node: i }, then));
    }
}

/// The lease is valid when the snapshot was taken. What is in it may not be proven yet.
fn ask_owner(
    model: &Follow,
    (world, seen): (&World, &Seen),
    i: usize,
    owner: &Owner,
) -> (Step, World) {
    let pending = owner.pending.map_or(0, |pending| pending.value.item());
    let items = world.counted(seen, world.nodes[i].next, None) | pending;
    let floor = world.known;
    let answer = Answer { floor, items };
    let mut then = world.clone();
    if pending == 0 || model.fault == Fault::ShowsUnproven {
        answered(&mut then, i, answer);
    } else {
        let owner = then.nodes[i].owner.as_mut().expect("just looked at");
        owner.parked.get_or_insert(answer);
    }
    (Step::Ask { node: i, items }, then)
}

fn follows(
    model: &Follow,
    (world, seen): (&World, &Seen),
    i: usize,
    node: &Node,
    found: &mut Found,
) {
    let Bounds { hellos, times, .. } = model.bounds;
    if world.hellos < hellos {
        let (k, by) = (world.hellos, i as u8);
        let mut then = world.clone();
        then.hellos += 1;
        then.send(seen, Value::Hello { node: by, k });
        then.nodes[i].hello = Some(Hello { k, age: 0 });
        found.push((Step::Hello { node: by, k }, then));
    }
    if node.fresh <= times.bound {
        let items = world.counted(seen, node.next, None);
        let needed = world.counted(seen, world.log.len() as u8, Some(times.bound));
        let mut then = world.clone();
        then.known |= items;
        if needed & !items != 0 {
            then.broken = Some(Violation::StaleFollower(i as u8));
        }
        found.push((Step::Ask { node: i, items }, then));
    }
    if node.claim.is_some() && model.fault == Fault::ForgetsClaim {
        let mut then = world.clone();
        then.nodes[i].claim = None;
        found.push((Step::Forget { node: i }, then));
    }
    let first = seen.states[usize::from(node.next)].epoch.is_some();
    if node.claim.is_none() && first {
        claims(model, (world, seen), i, found);
    }
}

/// What the node read may be old. An automatic claim is void once more counts.
fn claims(model: &Follow, (world, seen): (&World, &Seen), i: usize, found: &mut Found) {
    let at = seen.at(world.nodes[i].next);
    let made = |automatic: bool| {
        let made = world.decided.iter().skip(1);
        made.filter(|decided| decided.at.is_some() == automatic)
            .count()
    };
    let Bounds { claims, forced, .. } = model.bounds;
    for (automatic, most) in [(true, claims), (false, forced)] {
        if made(automatic) >= usize::from(most) {
            continue;
        }
        let nonce = world.decided.len() as u8;
        let with_n = automatic && model.fault != Fault::NoNumber;
        let claim = Value::Epoch {
            nonce,
            after: Some(at.epoch),
            n: with_n.then_some(at.n),
        };
        let mut then = world.clone();
        let end = seen.at(world.log.len() as u8);
        then.decided.push(Decided {
            by: Some(i as u8),
            at: automatic.then_some(end),
        });
        then.send(seen, claim);
        then.nodes[i].claim = Some(Claim {
            nonce,
            automatic,
            age: 0,
        });
        found.push((Step::Claim { node: i, claim }, then));
    }
}
