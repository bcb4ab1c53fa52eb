//! The table of options in `docs/operations.md`.

use crate::options::{Row, all};
use std::fmt::Write;

/// Set to 1 to write the table instead of comparing it.
const UPDATE: &str = "UPDATE_DOCS";
const HEAD: &str = "| option | default | takes | CONFIG SET | meaning |\n";

#[test]
fn the_page_has_the_table_of_options() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let mut page = std::fs::read_to_string(path).unwrap();
    let begin = page.find(HEAD).expect("the page has no table of options");
    let end = page[begin..].find("\n\n").unwrap() + begin + 1;
    if std::env::var_os(UPDATE).is_some() {
        page.replace_range(begin..end, &render());
        std::fs::write(path, &page).unwrap();
    } else {
        assert!(
            page[begin..end] == render(),
            "docs/operations.md is stale: run the tests once with {UPDATE}=1"
        );
    }
}

fn render() -> String {
    let mut table = format!("{HEAD}| --- | --- | --- | --- | --- |\n");
    all().for_each(|row| line(&mut table, row));
    table
}

fn line(table: &mut String, row: &Row) {
    let is_set = row.apply.map_or("no", |_| "yes");
    let cells = [
        format!("`--{} {}`", row.usage().0, row.usage().1),
        row.default_text().to_owned(),
        row.kind.takes(),
        is_set.to_owned(),
        row.help.to_owned(),
    ];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    writeln!(table, "| {} |", cells.join(" | ")).unwrap();
}
