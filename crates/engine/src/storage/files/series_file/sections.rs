//! Where the sections of an open file of parked series are, and what verifies them: 8.5 bytes each,
//! since a partition has thousands. Tested with the files.

use crate::storage::files::series_file::format::{
    HEADER_BYTES, SECTION_HEADER_BYTES, SectionHeader,
};
use std::ops::Range;

/// Sections between two whose offset is kept.
const STRIDE: usize = 16;

#[derive(Debug)]
pub(super) struct Sections {
    sections: Box<[Section]>,
    /// Where each [`STRIDE`]th one begins.
    offsets: Box<[u64]>,
}

/// The checksum is that of the bytes and of the rest of the header, which need not be kept.
#[derive(Debug)]
struct Section {
    stored_len: u32,
    checksum: u32,
}

impl Sections {
    /// Those with these headers, which follow each other from the header of the file on.
    pub(super) fn of<'a>(headers: impl Iterator<Item = &'a SectionHeader>) -> Self {
        let (mut sections, mut offsets) = (Vec::new(), Vec::new());
        let mut offset = HEADER_BYTES as u64;
        for header in headers {
            if sections.len() % STRIDE == 0 {
                offsets.push(offset);
            }
            offset += header.section_len();
            sections.push(Section {
                stored_len: header.stored_len,
                checksum: header.checksum,
            });
        }
        Self {
            sections: sections.into(),
            offsets: offsets.into(),
        }
    }

    /// The bytes of a section in the file, with its header.
    pub(super) fn range(&self, section: usize) -> Range<u64> {
        let kept = section / STRIDE;
        let before = &self.sections[kept * STRIDE..section];
        let begin = self.offsets[kept] + before.iter().map(Section::len).sum::<u64>();
        begin..begin + self.sections[section].len()
    }

    /// Where the last one ends.
    pub(super) fn end(&self) -> u64 {
        let last = self.sections.len().checked_sub(1);
        last.map_or(HEADER_BYTES as u64, |last| self.range(last).end)
    }

    /// Whether this is the header of a section, if its bytes match its checksum.
    pub(super) fn is_of(&self, section: usize, header: &SectionHeader) -> bool {
        let held = &self.sections[section];
        held.stored_len == header.stored_len && held.checksum == header.checksum
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.sections) + size_of_val(&*self.offsets)
    }
}

impl Section {
    fn len(&self) -> u64 {
        SECTION_HEADER_BYTES as u64 + u64::from(self.stored_len)
    }
}
