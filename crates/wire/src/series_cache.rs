//! Known rows and fields, by the bytes a sender writes.
//!
//! The cache of an [`Intake`](crate::intake::Intake): maps the bytes of a row to
//! its number, and a row and a field name to a slot. Senders repeat themselves, so
//! a row is first compared with the one that followed the current row last time,
//! and a field with the one at the same place; only then is anything hashed.
//!
//! The size is counted in bytes, so that the owner can bound it;
//! [`SeriesCache::clear`] drops everything. Hash seeds are random, so a sender
//! cannot provoke collisions.

use crate::intake::{Row, Slot};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// Rows and their fields.
#[derive(Debug, Default)]
pub struct SeriesCache {
    rows: Vec<RowEntry>,
    by_raw: HashTable<u32>,
    /// Each followed by `=`, as in a line.
    names: Vec<Box<[u8]>>,
    by_name: HashTable<u32>,
    /// From row and name to slot, for fields too far back in their row for a
    /// linear search.
    far: HashMap<(u32, u32), u32, RandomState>,
    hasher: RandomState,
    slots: u32,
    last: Option<u32>,
    bytes: usize,
}

#[derive(Debug)]
struct RowEntry {
    raw: Box<[u8]>,
    /// Numbers of names and the slots of their series.
    fields: Vec<(u32, u32)>,
    /// The row that followed this one.
    next: u32,
}

/// A row, a field and their table entries, without their bytes.
const ROW_BYTES: usize = size_of::<RowEntry>() + 16;
const FIELD_BYTES: usize = 16;
const FAR_FIELD_BYTES: usize = 24;
/// Fields of a row that are searched linearly.
const NEAR_FIELDS: usize = 64;

impl SeriesCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Approximate size in bytes.
    pub fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// Drops everything and invalidates all rows and slots.
    pub fn clear(&mut self) {
        let hasher = self.hasher.clone();
        *self = Self {
            hasher,
            ..Self::default()
        };
    }

    /// The row that followed the current one last time, if `text` begins with its
    /// bytes, and their number.
    #[inline]
    pub fn follow(&mut self, text: &[u8]) -> Option<(Row, usize)> {
        let next = self.rows.get(self.last? as usize)?.next;
        let raw = &self.rows.get(next as usize)?.raw;
        if !text.starts_with(raw) {
            return None;
        }
        self.last = Some(next);
        Some((Row(next), raw.len()))
    }

    /// Expects no particular row next, so that [`SeriesCache::find`] is called.
    pub fn expect_none(&mut self) {
        self.last = None;
    }

    /// The row with these bytes. Constant time.
    #[inline]
    pub fn find(&mut self, raw: &[u8]) -> Option<Row> {
        let hash = self.hasher.hash_one(raw);
        let is_it = |at: &u32| *self.rows[*at as usize].raw == *raw;
        let found = *self.by_raw.find(hash, is_it)?;
        Some(self.went_to(found))
    }

    /// Adds a new row.
    pub fn add(&mut self, raw: &[u8]) -> Row {
        let at = u32::try_from(self.rows.len()).expect("memory ends before 2^32 rows");
        self.rows.push(RowEntry {
            raw: raw.into(),
            fields: Vec::new(),
            // Rows usually repeat in the order of their first appearance.
            next: at + 1,
        });
        self.bytes += ROW_BYTES + raw.len();
        let hash = self.hasher.hash_one(raw);
        let rows = &self.rows;
        let rehash = |at: &u32| self.hasher.hash_one(&*rows[*at as usize].raw);
        self.by_raw.insert_unique(hash, at, rehash);
        self.went_to(at)
    }

    /// The slot of a field; place `at` of the row is tried first.
    #[inline]
    pub fn field(&self, row: Row, at: usize, name: &[u8]) -> Option<Slot> {
        let fields = &self.rows.get(row.0 as usize)?.fields;
        match fields.get(at) {
            Some(&(known, slot)) if *plain(&self.names[known as usize]) == *name => {
                Some(Slot(slot))
            }
            _ => self.field_elsewhere(row, fields, name),
        }
    }

    /// The slot of the field at place `at` of the row, if `text` begins with
    /// its name and `=`, and the number of those bytes.
    #[inline]
    pub fn expect(&self, row: Row, at: usize, text: &[u8]) -> Option<(Slot, usize)> {
        let &(known, slot) = self.rows.get(row.0 as usize)?.fields.get(at)?;
        let name = &*self.names[known as usize];
        begins_with(text, name).then_some((Slot(slot), name.len()))
    }

    /// The slot of the first field of a row, and how many fields it has.
    #[inline]
    pub fn slots(&self, row: Row) -> Option<(Slot, usize)> {
        let fields = &self.rows.get(row.0 as usize)?.fields;
        fields.first().map(|field| (Slot(field.1), fields.len()))
    }

    /// Gives a new field of the row its own slot. Slots count from 0.
    pub fn learn(&mut self, row: Row, name: &[u8]) -> Slot {
        let name = self.intern(name);
        let slot = self.slots;
        if let Some(entry) = self.rows.get_mut(row.0 as usize) {
            if entry.fields.len() >= NEAR_FIELDS {
                self.far.insert((row.0, name), slot);
                self.bytes += FAR_FIELD_BYTES;
            }
            entry.fields.push((name, slot));
        }
        self.slots += 1;
        self.bytes += FIELD_BYTES;
        Slot(slot)
    }

    #[cold]
    fn field_elsewhere(&self, row: Row, fields: &[(u32, u32)], name: &[u8]) -> Option<Slot> {
        let name = self.name(name)?;
        let mut near = fields.iter().take(NEAR_FIELDS);
        if let Some(found) = near.find(|field| field.0 == name) {
            return Some(Slot(found.1));
        }
        if fields.len() > NEAR_FIELDS {
            self.far.get(&(row.0, name)).copied().map(Slot)
        } else {
            None
        }
    }

    fn name(&self, name: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        let is_it = |at: &u32| *plain(&self.names[*at as usize]) == *name;
        self.by_name.find(hash, is_it).copied()
    }

    fn intern(&mut self, name: &[u8]) -> u32 {
        if let Some(known) = self.name(name) {
            return known;
        }
        let at = u32::try_from(self.names.len()).expect("memory ends before 2^32 names");
        self.names.push([name, b"="].concat().into());
        self.bytes += 33 + name.len();
        let hash = self.hasher.hash_one(name);
        let names = &self.names;
        let rehash = |at: &u32| self.hasher.hash_one(plain(&names[*at as usize]));
        self.by_name.insert_unique(hash, at, rehash);
        at
    }

    #[inline]
    fn went_to(&mut self, at: u32) -> Row {
        if let Some(last) = self.last {
            self.rows[last as usize].next = at;
        }
        self.last = Some(at);
        Row(at)
    }
}

/// A name without the `=` after it.
#[inline]
fn plain(name: &[u8]) -> &[u8] {
    name.split_last().map_or(name, |(_, plain)| plain)
}

/// As `text.starts_with(name)`, without a call for names of usual lengths: two
/// words that overlap hold all of one.
#[inline]
fn begins_with(text: &[u8], name: &[u8]) -> bool {
    let Some(text) = text.get(..name.len()) else {
        return false;
    };
    match name.len() {
        8..=16 => {
            text.first_chunk::<8>() == name.first_chunk()
                && text.last_chunk::<8>() == name.last_chunk()
        }
        17..=32 => {
            text.first_chunk::<16>() == name.first_chunk()
                && text.last_chunk::<16>() == name.last_chunk()
        }
        _ => text == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_fields_are_found_again() {
        let mut cache = SeriesCache::new();
        let (a, b) = (cache.add(b"a "), cache.add(b"b "));
        assert_eq!((cache.find(b"a "), cache.find(b"b ")), (Some(a), Some(b)));
        assert_eq!(cache.find(b"c "), None);
        let (x, y) = (cache.learn(a, b"x"), cache.learn(a, b"y"));
        assert_eq!(cache.field(a, 0, b"x"), Some(x));
        assert_eq!(cache.field(a, 1, b"x"), Some(x));
        assert_eq!(cache.field(a, 7, b"y"), Some(y));
        assert_eq!(cache.field(b, 0, b"x"), None);
        assert_ne!(cache.learn(b, b"x"), x);
    }

    #[test]
    fn a_field_is_expected_where_it_stood_whatever_the_length_of_its_name() {
        let mut cache = SeriesCache::new();
        let row = cache.add(b"a ");
        let names: Vec<String> = (0..40).map(|length| "n".repeat(length)).collect();
        for (at, name) in names.iter().enumerate() {
            let slot = cache.learn(row, name.as_bytes());
            let length = name.len() + 1;
            let text = format!("{name}=1i");
            assert_eq!(cache.expect(row, at, text.as_bytes()), Some((slot, length)));
            // Another name, a truncated one, and a longer one.
            for place in 0..=name.len() {
                let mut other = text.clone().into_bytes();
                other[place] = b'x';
                assert_eq!(cache.expect(row, at, &other), None, "{name} at {place}");
                assert_eq!(cache.expect(row, at, &text.as_bytes()[..place]), None);
            }
            assert_eq!(cache.expect(row, at + 1, text.as_bytes()), None);
        }
    }

    #[test]
    fn the_row_that_came_next_before_is_expected_next() {
        let mut cache = SeriesCache::new();
        let rows = [b"a ", b"b ", b"c "].map(|raw| cache.add(raw));
        assert_eq!(cache.find(b"a "), Some(rows[0]));
        assert_eq!(cache.follow(b"b 1"), Some((rows[1], 2)));
        assert_eq!(cache.follow(b"a 1"), None);
        assert_eq!(cache.find(b"a "), Some(rows[0]));
        assert_eq!(cache.find(b"c "), Some(rows[2]));
        assert_eq!(cache.find(b"a "), Some(rows[0]));
        assert_eq!(cache.follow(b"c 1"), Some((rows[2], 2)));
    }

    #[test]
    fn the_fields_of_rows_of_any_width_are_found_wherever_they_stand() {
        let mut cache = SeriesCache::new();
        let rows = [cache.add(b"a "), cache.add(b"b ")];
        // As many as a line may hold: a linear search would take too long.
        let names: Vec<String> = (0..200_000).map(|number| number.to_string()).collect();
        for row in rows {
            for name in &names {
                assert_eq!(cache.field(row, usize::MAX, name.as_bytes()), None);
                cache.learn(row, name.as_bytes());
            }
        }
        let slots = (0..).map(Slot);
        let all = rows
            .iter()
            .flat_map(|row| names.iter().map(|name| (*row, name)));
        for ((row, name), slot) in all.zip(slots) {
            assert_eq!(cache.field(row, usize::MAX, name.as_bytes()), Some(slot));
        }
        assert_eq!(cache.field(rows[0], 0, b"x"), None);
        cache.clear();
        let row = cache.add(b"a ");
        assert_eq!(cache.field(row, 0, b"100000"), None);
    }

    #[test]
    fn clearing_gives_the_memory_back() {
        let mut cache = SeriesCache::new();
        for number in 0..1000 {
            let row = cache.add(format!("row{number} ").as_bytes());
            cache.learn(row, b"value");
        }
        assert!(cache.len_bytes() > 1000 * 64);
        cache.clear();
        assert_eq!(cache.len_bytes(), 0);
        assert_eq!(cache.find(b"row1 "), None);
        assert_eq!(cache.follow(b"row1 "), None);
    }
}
