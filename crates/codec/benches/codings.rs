//! Placeholder until the table is there.
fn main() {}
