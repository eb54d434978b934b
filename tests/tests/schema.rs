//! docs/schema.md shows the tables of the store and the references between them.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{env, fs, path::Path};

#[test]
fn schema_diagram_shows_the_tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let source = |folder| read(&root.join("crates/store/src").join(folder).join("schema.rs"));
    let tables =
        ["sql", "withdrawals"].map(source).iter().flat_map(|text| tables(text)).collect::<Vec<_>>();
    let migrations = migrations(&root.join("migrations/postgres"));
    let expected = diagram(&references(&migrations));

    let file = root.join("docs/schema.md");
    let text = read(&file);
    for name in &tables {
        assert!(text.contains(&format!("| `{name}` |")), "docs/schema.md does not describe {name}");
    }
    let (before, rest) = text.split_once("```mermaid\n").unwrap();
    let (present, after) = rest.split_once("```").unwrap();
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, format!("{before}```mermaid\n{expected}```{after}")).unwrap();
    } else {
        assert_eq!(present, expected, "run this test with UPDATE_DOCS=1 to update docs/schema.md");
    }
}

/// The names of the tables in the `table!` macros.
fn tables(source: &str) -> Vec<String> {
    let blocks = source.split("table! {").skip(1);
    blocks.map(|block| block.trim_start().split(" (").next().unwrap().to_owned()).collect()
}

/// A column, its table, and the table that it refers to.
struct Reference {
    table: String,
    column: String,
    target: String,
}

fn references(migrations: &str) -> Vec<Reference> {
    let mut references = Vec::new();
    let mut table = String::new();
    for line in migrations.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("create table ") {
            rest.split(' ').next().unwrap().clone_into(&mut table);
        }
        if let Some((column, rest)) = line.split_once(" references ") {
            let target = rest.split([' ', ',']).next().unwrap().to_owned();
            let column = match column.strip_prefix("foreign key (") {
                Some(columns) => columns.trim_end_matches(')').replace(", ", " "),
                None => column.split(' ').next().unwrap().to_owned(),
            };
            references.push(Reference { table: table.clone(), column, target });
        }
    }
    references
}

fn diagram(references: &[Reference]) -> String {
    let mut lines = vec!["erDiagram".to_owned()];
    for Reference { table, column, target } in references {
        lines.push(format!("    {target} ||--o{{ {table} : \"{column}\""));
    }
    lines.join("\n") + "\n"
}

/// The text of all migrations.
fn migrations(folder: &Path) -> String {
    let mut folders: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders.iter().map(|folder| read(&folder.join("up.sql"))).collect()
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}
