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
    let expected = diagram(&tables, &references(&migrations));

    let file = root.join("docs/schema.md");
    let text = read(&file);
    for Table { name, .. } in &tables {
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

struct Table {
    name: String,
    primary_key: Vec<String>,
    /// The name and the type of each column.
    columns: Vec<(String, String)>,
}

/// The tables in the `table!` macros.
fn tables(source: &str) -> Vec<Table> {
    source
        .split("table! {")
        .skip(1)
        .map(|block| {
            let mut lines = block.lines().map(str::trim).filter(|line| !line.is_empty());
            let head = lines.next().unwrap();
            let (name, key) = head.split_once(" (").unwrap();
            let (key, _) = key.split_once(')').unwrap();
            let columns = lines
                .take_while(|line| *line != "}")
                .map_while(|line| line.trim_end_matches(',').split_once(" -> "))
                .map(|(name, sql_type)| (name.to_owned(), sql_type.to_owned()))
                .collect();
            let primary_key = key.split(", ").map(ToOwned::to_owned).collect();
            Table { name: name.to_owned(), primary_key, columns }
        })
        .collect()
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

fn diagram(tables: &[Table], references: &[Reference]) -> String {
    let mut lines = vec!["erDiagram".to_owned()];
    for Reference { table, column, target } in references {
        lines.push(format!("    {target} ||--o{{ {table} : \"{column}\""));
    }
    for Table { name, primary_key, columns } in tables {
        lines.push(format!("    {name} {{"));
        for (column, sql_type) in columns {
            let is_nullable = sql_type.starts_with("Nullable");
            let sql_type = sql_type.trim_start_matches("Nullable<").trim_end_matches('>');
            let key = if primary_key.contains(column) { " PK" } else { "" };
            let nullable = if is_nullable { " \"nullable\"" } else { "" };
            lines.push(format!("        {sql_type} {column}{key}{nullable}"));
        }
        lines.push("    }".to_owned());
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
