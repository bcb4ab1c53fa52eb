//! What clients were told, and what may be true at each position of the log.
//!
//! An owner's commands are in the log in the order in which it did them. So whatever becomes of it,
//! a beginning of them is what counts, and the database at a position is the plain one behind the
//! last command up to it: at the owner, at each follower, at each new owner.

use super::plain::{Answer, Command, Plain};
use std::collections::VecDeque;

/// Of one log.
pub(crate) struct Ledger {
    /// The plain database behind each command, by the position of its group.
    states: Vec<(u64, Plain)>,
    /// What was acknowledged, or shown by an owner: it must be there for ever.
    known: u64,
    /// What was acknowledged, and when: simulated nanoseconds.
    acknowledged: VecDeque<(u64, u64)>,
    /// Commands whose clients wait, by position.
    parked: VecDeque<u64>,
    pub(crate) commands: u64,
    /// Of owners, and of followers.
    pub(crate) answers: (u64, u64),
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            states: vec![(0, Plain::default())],
            known: 0,
            acknowledged: VecDeque::new(),
            parked: VecDeque::new(),
            commands: 0,
            answers: (0, 0),
        }
    }
}

impl Ledger {
    /// A database that has the rule alone, at `position`.
    pub(crate) fn begins(&mut self, position: u64) {
        self.states = vec![(0, Plain::default()), (position, Plain::with_rule())];
    }

    /// The plain database behind all commands.
    pub(crate) fn newest(&self) -> &Plain {
        &self.states.last().expect("one at least").1
    }

    /// The owner did a command, whose client waits for the group at `position`.
    pub(crate) fn ran(&mut self, command: Command, answer: Answer, position: u64) {
        let mut plain = self.newest().clone();
        assert_eq!(plain.apply(command), answer, "{command:?}");
        if answer == Answer::Done {
            let last = self.states.last().expect("one at least").0;
            assert!(
                position > last,
                "{command:?} at {position}, not behind {last}"
            );
            self.states.push((position, plain));
        }
        self.commands += 1;
        self.parked.push_back(position);
    }

    /// All up to `position` is durable at the owner: clients hear so.
    pub(crate) fn acknowledge(&mut self, position: u64, now_ns: u64) {
        while let Some(parked) = self.parked.pop_front_if(|parked| *parked <= position) {
            self.known = self.known.max(parked);
            self.acknowledged.push_back((now_ns, self.known));
        }
    }

    /// Another node owns the log, from behind `position` on: what was behind it never counts.
    pub(crate) fn takes_over(&mut self, position: u64) {
        let known = self.known;
        assert!(
            position >= known,
            "group {known} was acknowledged or seen, the new owner has up to {position}"
        );
        self.states.retain(|(at, _)| *at <= position);
        self.parked.clear();
    }

    /// What a database with all groups up to `position` must hold.
    pub(crate) fn at(&self, position: u64) -> &Plain {
        let behind = self.states.partition_point(|(at, _)| *at <= position);
        &self.states[behind - 1].1
    }

    /// The owner answers a client, now, from all up to `position`.
    pub(crate) fn owner_answers(&mut self, position: u64, held: &Plain) {
        let known = self.known;
        assert!(
            position >= known,
            "the owner answers from group {position}, {known} was known"
        );
        self.answers.0 += 1;
        self.compare(position, held, "the owner");
        self.known = position;
    }

    /// A follower answers a client, now, from all up to `position`, that nothing is missing which
    /// was acknowledged `bound_ns` ago.
    pub(crate) fn follower_answers(
        &mut self,
        position: u64,
        held: &Plain,
        now_ns: u64,
        bound_ns: u64,
    ) {
        while self
            .acknowledged
            .get(1)
            .is_some_and(|(at_ns, _)| at_ns + bound_ns < now_ns)
        {
            self.acknowledged.pop_front();
        }
        if let Some((at_ns, oldest)) = self.acknowledged.front()
            && at_ns + bound_ns < now_ns
        {
            assert!(
                position >= *oldest,
                "a follower answers from group {position}, {oldest} was acknowledged {} ms ago",
                (now_ns - at_ns) / 1_000_000
            );
        }
        self.answers.1 += 1;
        self.compare(position, held, "a follower");
    }

    /// Whether a database is what it must be.
    pub(crate) fn compare(&self, position: u64, held: &Plain, who: &str) {
        let wanted = self.at(position);
        assert!(
            held == wanted,
            "{who} at group {position}: {}",
            wanted.difference(held)
        );
    }
}
