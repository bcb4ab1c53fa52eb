//! Compaction as the owner of a database drives it.
