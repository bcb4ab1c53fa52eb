//! When followers claim, with a simulated clock.

use super::clock::{READY, Role, STEP_MS, World, claim_bytes, member};
use crate::ledger::turns::Chance;
use latewood_cluster::envelope::{Body, Envelope, Hello, State};
use latewood_cluster::follower::core::{Act, Change, Core, SILENCE, STEP};
use latewood_cluster::node::NodeId;
use latewood_cluster::presence::Presence;
use latewood_cluster::scan::{Scan, Verdict};
use std::time::Duration;

const SILENCE_MS: u64 = SILENCE.as_millis() as u64;
const RANK_MS: u64 = STEP.as_millis() as u64;

fn kill(world: &mut World, node: usize) {
    world.nodes[node].role = Role::Still;
}

#[test]
fn a_living_owner_is_left_alone() {
    let mut world = World::new(3);
    world.run(60_000);
    assert_eq!((world.claims_sent, world.owner()), (0, Some(0)));
}

#[test]
fn a_stall_of_kafka_deposes_nobody() {
    for (length_ms, begins_ms) in [700, 1_300, 3_100, 30_000]
        .into_iter()
        .flat_map(|length| (0..20).map(move |begins| (length, begins * STEP_MS)))
    {
        let mut world = World::new(3);
        world.run(begins_ms);
        world.stalls = true;
        world.run(length_ms);
        world.stalls = false;
        world.run(20_000);
        let what = (length_ms, begins_ms);
        assert_eq!((world.claims_sent, world.owner()), (0, Some(0)), "{what:?}");
    }
}

#[test]
fn stalls_that_follow_each_other_depose_nobody() {
    for (stall_ms, calm_ms) in [(900, 300), (2_000, 100), (2_900, 600), (500, 500)] {
        let mut world = World::new(3);
        for _ in 0..20 {
            world.stalls = true;
            world.run(stall_ms);
            world.stalls = false;
            world.run(calm_ms);
        }
        world.run(10_000);
        let what = (stall_ms, calm_ms);
        assert_eq!(
            (world.owners.len(), world.owner()),
            (0, Some(0)),
            "{what:?}"
        );
    }
}

/// Each request takes its own time, up to a tick, and Kafka stalls now and then.
#[test]
fn delays_and_stalls_by_chance_depose_nobody() {
    for seed in 1..=300 {
        let mut world = World::new(3);
        world.chance = Some(Chance(seed));
        let mut chance = Chance(seed ^ 1 << 32);
        for _ in 0..5 {
            world.run(2_000 + STEP_MS * chance.below(60));
            world.stalls = true;
            world.run(STEP_MS * chance.below(160));
            world.stalls = false;
        }
        world.run(10_000);
        assert_eq!(
            (world.owners.len(), world.owner()),
            (0, Some(0)),
            "seed {seed}"
        );
        kill(&mut world, 0);
        let (by, after_ms) = world.until_claimed(10_000);
        assert!(
            (1..3).contains(&by) && after_ms <= 6_000,
            "seed {seed}: {by}, {after_ms}"
        );
    }
}

#[test]
fn the_first_follower_takes_over_from_a_dead_owner() {
    let mut world = World::new(3);
    kill(&mut world, 0);
    let (by, after_ms) = world.until_claimed(10_000);
    assert_eq!(by, 1);
    assert!(
        (SILENCE_MS - 600..=SILENCE_MS + 300).contains(&after_ms),
        "{after_ms}"
    );
    world.run(30_000);
    assert_eq!((world.owners.len(), world.claims_sent), (1, 1));
}

#[test]
fn the_next_follower_takes_over_where_the_first_is_dead_too() {
    let mut world = World::new(4);
    kill(&mut world, 0);
    kill(&mut world, 1);
    let (by, after_ms) = world.until_claimed(10_000);
    assert_eq!(by, 2);
    let due_ms = SILENCE_MS + RANK_MS;
    assert!(
        (due_ms - 600..=due_ms + 300).contains(&after_ms),
        "{after_ms}"
    );
    world.run(30_000);
    assert_eq!(world.owners.len(), 1);
}

#[test]
fn an_owner_that_dies_in_a_stall_is_followed_when_kafka_is_back() {
    let mut world = World::new(3);
    world.stalls = true;
    world.run(2_000);
    kill(&mut world, 0);
    world.run(20_000);
    world.stalls = false;
    let (by, after_ms) = world.until_claimed(10_000);
    assert_eq!(by, 1);
    assert!(after_ms >= SILENCE_MS, "{after_ms}");
}

#[test]
fn after_a_farewell_nobody_waits_for_silence() {
    let mut world = World::new(3);
    world.farewell();
    let (by, after_ms) = world.until_claimed(10_000);
    assert!(by == 1 && after_ms <= 300, "{by} after {after_ms}");
    world.run(10_000);
    assert_eq!((world.owners.len(), world.claims_sent), (1, 1));
}

#[test]
fn who_may_not_own_the_log_is_no_rank() {
    let mut world = World::new(3);
    world.nodes[1].ready.stands = false;
    // Others hear of it, and it is no candidate once it was none for a while.
    world.run(15_000);
    world.farewell();
    let (by, after_ms) = world.until_claimed(10_000);
    assert!(by == 2 && after_ms <= 300, "{by} after {after_ms}");
}

#[test]
fn a_follower_that_lacks_files_claims_behind_all_others() {
    for has_others in [true, false] {
        let mut world = World::new(3);
        world.nodes[1].ready.lacks_files = true;
        if !has_others {
            kill(&mut world, 2);
        }
        // Others hear of it, and the dead one is forgotten.
        world.run(15_000);
        kill(&mut world, 0);
        let (by, after_ms) = world.until_claimed(10_000);
        let (wanted, latest_ms) = if has_others {
            (2, SILENCE_MS)
        } else {
            (1, SILENCE_MS + 2_000)
        };
        assert_eq!(by, wanted);
        assert!(after_ms <= latest_ms + 300, "{after_ms}");
        world.run(30_000);
        assert_eq!(world.owners.len(), 1);
    }
}

#[test]
fn a_follower_that_is_not_loaded_claims_nothing() {
    let mut world = World::new(2);
    world.nodes[1].ready.is_loaded = false;
    world.farewell();
    world.run(60_000);
    assert_eq!(world.claims_sent, 0);
    world.nodes[1].ready = READY;
    let (by, after_ms) = world.until_claimed(10_000);
    assert!(by == 1 && after_ms <= 300, "{by} after {after_ms}");
}

#[test]
fn a_node_that_slept_does_not_take_its_sleep_for_silence() {
    let mut world = World::new(3);
    kill(&mut world, 2);
    world.run(60_000);
    // It wakes and looks at the clock before it reads.
    let now_ns = world.now_ms * 1_000_000;
    let act = world.nodes[2].core.tick(now_ns, READY);
    assert!(!matches!(act, Act::Claim(_)), "{act:?}");
    world.nodes[2].role = Role::Follows;
    world.run(20_000);
    assert_eq!((world.claims_sent, world.owner()), (0, Some(0)));
}

#[test]
fn an_operator_deposes_a_living_owner() {
    let mut world = World::new(3);
    world.nodes[2].core.force();
    let (by, after_ms) = world.until_claimed(10_000);
    assert!(by == 2 && after_ms <= 300, "{by} after {after_ms}");
    world.run(30_000);
    assert_eq!((world.owner(), world.claims_sent), (Some(2), 1));
}

#[test]
fn a_claim_that_is_lost_on_the_way_is_sent_again() {
    let mut world = World::new(2);
    kill(&mut world, 0);
    while world.claims_sent == 0 {
        world.step();
    }
    world.loses = Some(1);
    world.step();
    world.loses = None;
    let (by, after_ms) = world.until_claimed(10_000);
    assert!(by == 1 && after_ms <= 1_000, "{by} after {after_ms}");
    let nonces = world
        .log
        .iter()
        .filter_map(|value| match Envelope::decode(value) {
            Ok(Envelope::Epoch { claimant, .. }) => Some(claimant.nonce),
            _ => None,
        });
    // That of the first owner, and one more.
    assert_eq!(nonces.count(), 2);
}

/// A follower that has read an owned log, before any HELLO.
fn alone() -> (Core, Scan, State) {
    let at = State {
        epoch: Some(0),
        n: 7,
        sequence: 3,
    };
    let presence = Presence::new(NodeId([1; 20]), [1; 12]);
    let core = Core::new(presence, Duration::from_secs(5), (at, true), 0);
    (core, Scan::new(at), at)
}

/// Has the follower say HELLO and read it back, so that it claims. The claim.
fn claims(core: &mut Core, scan: &Scan) -> Act {
    let Act::Hello(nonce) = core.tick(1, READY) else {
        panic!("it says nothing");
    };
    let mut hello = presence_hello(nonce);
    hello.by.is_caught_up = true;
    let verdict = Verdict::Hello(hello);
    assert_eq!(core.read((8, &verdict), scan.state(), 2), Change::Fresh(1));
    let act = core.tick(3, READY);
    assert!(matches!(act, Act::Claim(_)), "{act:?}");
    act
}

fn presence_hello(nonce: [u8; 16]) -> Hello {
    Hello {
        nonce,
        by: member(1),
        owns: None,
        leaves: false,
    }
}

#[test]
fn a_claim_of_unknown_outcome_is_owned_whenever_it_counts() {
    let (mut core, mut scan, at) = alone();
    let act = claims(&mut core, &scan);
    let Act::Claim(claim) = act else {
        unreachable!()
    };
    assert_eq!((claim.after, claim.n), (Some(0), Some(at.n)));
    core.failed(act);
    // An hour later.
    let now_ns = 3_600_000_000_000;
    let value = claim_bytes(claim);
    let verdict = scan.next(9, &value);
    assert_eq!(
        core.read((9, &verdict), scan.state(), now_ns),
        Change::Owner
    );
    // Its copy is nobody's claim.
    let verdict = scan.next(10, &value);
    assert_eq!(
        core.read((10, &verdict), scan.state(), now_ns),
        Change::Nothing
    );
}

#[test]
fn a_claim_is_void_once_another_record_counts() {
    let (mut core, mut scan, at) = alone();
    let act = claims(&mut core, &scan);
    core.failed(act);
    let tick = Envelope::Record {
        at,
        body: Body::Tick,
    }
    .encode()
    .unwrap();
    let verdict = scan.next(9, &tick);
    core.read((9, &verdict), scan.state(), 4);
    let Act::Claim(claim) = act else {
        unreachable!()
    };
    let value = claim_bytes(claim);
    let verdict = scan.next(10, &value);
    assert_eq!(core.read((10, &verdict), scan.state(), 5), Change::Nothing);
    // It is not sent again, and no other before silence.
    for now_ms in 1..SILENCE_MS {
        let act = core.tick(now_ms * 1_000_000, READY);
        assert!(!matches!(act, Act::Claim(_)));
    }
}

#[test]
fn a_follower_whose_hellos_do_not_come_back_claims_nothing() {
    let (mut core, _, _) = alone();
    for now_ms in (0..60_000).step_by(100) {
        let act = core.tick(now_ms * 1_000_000, READY);
        assert!(!matches!(act, Act::Claim(_)), "Kafka takes nothing");
    }
}

#[test]
fn a_dead_owner_is_followed_where_kafka_is_slow() {
    for (delay_ms, seed) in [600, 1_000, 1_300]
        .into_iter()
        .flat_map(|delay| (1..=20).map(move |seed| (delay, seed)))
    {
        let mut world = World::new(3);
        world.delay_ms = delay_ms;
        world.chance = Some(Chance(seed));
        world.run(120_000);
        assert_eq!(
            (world.claims_sent, world.owner()),
            (0, Some(0)),
            "{delay_ms}, seed {seed}"
        );
        world.stalls = true;
        world.run(20_000);
        world.stalls = false;
        world.run(20_000);
        assert_eq!(
            (world.owners.len(), world.owner()),
            (0, Some(0)),
            "{delay_ms}, seed {seed}"
        );
        kill(&mut world, 0);
        let (by, after_ms) = world.until_claimed(60_000);
        assert!((1..3).contains(&by));
        assert!((13_000..30_000).contains(&after_ms), "{after_ms}");
        world.run(60_000);
        assert_eq!(world.owners.len(), 1);
    }
}

#[test]
fn freshness_is_that_of_the_hello_that_was_read_back() {
    let (mut core, scan, _) = alone();
    let first = core.tick(1_000, READY);
    let Act::Hello(first) = first else {
        panic!("{first:?}")
    };
    let second = core.tick(10_000_000_000, READY);
    let Act::Hello(second) = second else {
        panic!("{second:?}")
    };
    let mut read = |nonce| {
        let verdict = Verdict::Hello(presence_hello(nonce));
        core.read((8, &verdict), scan.state(), 11_000_000_000)
    };
    assert_eq!(read([9; 16]), Change::Nothing, "of a process before");
    assert_eq!(read(first), Change::Fresh(1_000));
    assert_eq!(read(first), Change::Nothing, "a copy");
    assert_eq!(read(second), Change::Fresh(10_000_000_000));
}

#[test]
fn a_log_that_nobody_may_own_grows_slowly() {
    let mut world = World::new(2);
    world.nodes[1].ready.stands = false;
    kill(&mut world, 0);
    world.run(10_000);
    let before = world.log.len();
    world.run(60_000);
    let said = world.log.len() - before;
    assert!((30..=40).contains(&said), "{said} in a minute");
}
