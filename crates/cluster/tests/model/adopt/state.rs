//! A state of the model: the log, the store, what each node has in memory and in files.

use super::Fault;
use crate::model::record::{Items, Judge, Name, Named, Seen, Value, Verdict, may_count};

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) nodes: usize,
    /// Records in the log, of all kinds.
    pub(super) log: usize,
    /// What clients write.
    pub(super) items: u8,
    pub(super) cuts: u8,
    pub(super) uploads: u8,
    pub(super) claims: u8,
    /// Nodes that forget all.
    pub(super) restarts: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) log: Vec<Value>,
    /// Records before it were trimmed.
    pub(super) begin: u8,
    /// Sent and not appended.
    pub(super) flight: Vec<Value>,
    pub(super) nodes: Vec<Node>,
    /// The objects by their names, and the items in each.
    pub(super) store: Vec<(Name, Items)>,
    pub(super) written: u8,
    pub(super) cuts: u8,
    pub(super) uploads: u8,
    pub(super) claims: u8,
    pub(super) restarts: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Node {
    /// Up to where it applied the log; `None`: nothing is loaded.
    pub(super) next: Option<u8>,
    /// The checkpoint that its files are of, and the items in them.
    pub(super) named: Option<Named>,
    pub(super) files: Items,
    /// What was frozen, by the numbers of the CUTs, oldest first.
    pub(super) frozen: Vec<(u8, Items)>,
    pub(super) live: Items,
    /// Files that it wrote as an owner, by their paths. They stay on its disk.
    pub(super) disk: Vec<(Name, Items)>,
    /// The nonce of its claim.
    pub(super) claim: Option<u8>,
    pub(super) owner: Option<Owner>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub(super) epoch: u8,
    /// Of the next object.
    pub(super) number: u8,
    pub(super) pending: Option<Value>,
    /// In the store, and no record says so.
    pub(super) uploaded: Option<Named>,
}

/// What must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Violation {
    /// The node applied it, and does not show it.
    Missing { node: usize, items: Items },
    /// The node shows it twice.
    Twice { node: usize, items: Items },
    /// The node shows what is not before the place up to which it applied the log.
    TooNew { node: usize, items: Items },
    /// The object that the newest CHECKPOINT names is not in the store.
    Gone(Name),
}

impl World {
    /// Node 0 owns the tablet, the others follow.
    pub(super) fn start(bounds: Bounds) -> Self {
        let node = Node {
            next: Some(0),
            ..Node::default()
        };
        let mut nodes = vec![node; bounds.nodes];
        nodes[0].next = Some(1);
        nodes[0].owner = Some(Owner::new(0, 1));
        let (nonce, after, n) = (0, None, None);
        Self {
            log: vec![Value::Epoch { nonce, after, n }],
            begin: 0,
            flight: Vec::new(),
            nodes,
            store: Vec::new(),
            written: 0,
            cuts: 0,
            uploads: 0,
            claims: 0,
            restarts: 0,
        }
    }

    pub(super) fn scan(&self, judge: &mut Judge) -> Seen {
        judge.scan(self.log.iter().copied())
    }

    pub(super) fn send(&mut self, seen: &Seen, value: Value) {
        if let Err(place) = self.flight.binary_search(&value)
            && may_count(seen.end(), value)
        {
            self.flight.insert(place, value);
        }
    }

    /// The records that count from `begin` to before `end`, with their offsets.
    pub(super) fn counted(
        &self,
        seen: &Seen,
        begin: u8,
        end: u8,
    ) -> impl DoubleEndedIterator<Item = (u8, Value)> {
        (begin..end)
            .filter(|&offset| seen.verdicts[usize::from(offset)] == Verdict::Counts)
            .map(|offset| (offset, self.log[usize::from(offset)]))
    }

    /// Where the CUT with this number is, unless it was trimmed.
    pub(super) fn cut(&self, seen: &Seen, cut: u8) -> Option<u8> {
        let mut records = self.counted(seen, self.begin, self.log.len() as u8);
        let is_cut = |value| matches!(value, Value::Owned { at, .. } if at.n == cut);
        records
            .find(|&(_, value)| is_cut(value))
            .map(|(offset, _)| offset)
    }

    /// The items in an object.
    pub(super) fn object(&self, name: Name) -> Option<Items> {
        let found = self.store.binary_search_by_key(&name, |object| object.0);
        found.ok().map(|place| self.store[place].1)
    }

    /// An object that is there is taken for the one that is to be uploaded.
    pub(super) fn put(&mut self, name: Name, items: Items) {
        if let Err(place) = self.store.binary_search_by_key(&name, |object| object.0) {
            self.store.insert(place, (name, items));
        }
    }
}

impl Node {
    /// It forgets all but its disk.
    pub(super) fn anew(&self) -> Self {
        Self {
            disk: self.disk.clone(),
            ..Self::default()
        }
    }

    /// Of the checkpoint behind that of its files.
    pub(super) fn next_number(&self) -> u8 {
        self.named.map_or(1, |named| named.name.number + 1)
    }

    pub(super) fn write(&mut self, path: Name, items: Items) {
        self.disk.retain(|file| file.0 != path);
        self.disk.push((path, items));
    }

    /// The files of a checkpoint: what is on the disk under their paths is not fetched.
    pub(super) fn files(&self, fault: Fault, world: &World, name: Name) -> Option<Items> {
        let path = fault.path(name);
        let file = self.disk.iter().find(|file| file.0 == path);
        file.map(|file| file.1).or_else(|| world.object(name))
    }

    /// Takes over the files of a checkpoint, and drops what was frozen and is in them.
    pub(super) fn adopt(&mut self, named: Named, files: Items) {
        self.named = Some(named);
        self.files = files;
        self.frozen.retain(|&(cut, _)| cut > named.cut);
    }

    pub(super) fn freeze(&mut self, cut: u8) {
        self.frozen.push((cut, std::mem::take(&mut self.live)));
    }
}

impl Owner {
    pub(super) fn new(epoch: u8, number: u8) -> Self {
        Self {
            epoch,
            number,
            pending: None,
            uploaded: None,
        }
    }
}
