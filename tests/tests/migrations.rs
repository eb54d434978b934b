//! Migrations only add, so that instances of neighboring releases work side by side, and none is changed, so
//! that databases with the same version have the same tables.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
};

use sha2::{Digest, Sha256};

/// The schema of the first release.
const FIRST: &str = "2026-11-21-000001_initial";

/// The statement that an instance of the release before could not work with.
fn breaking_statement(sql: &str) -> Option<String> {
    let lines = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join(" ").to_lowercase();
    let statements = text.split(';').map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
    // A table of the script itself is none that the release before knows.
    let is_own = |statement: &str| {
        let table = statement.strip_prefix("drop table ");
        table.is_some_and(|table| text.contains(&format!("create table {table} ")))
    };
    statements.into_iter().find(|statement| is_breaking(statement) && !is_own(statement))
}

fn is_breaking(statement: &str) -> bool {
    if statement.starts_with("drop ") || statement.starts_with("delete ") {
        return true;
    }
    let Some(change) = statement.strip_prefix("alter table ") else { return false };
    // A check that becomes weaker accepts all that the release before writes.
    if let Some((_, constraint)) = change.split_once(" drop constraint ") {
        let (name, added) = constraint.split_once(", ").unwrap_or((constraint, ""));
        let is_check =
            added.is_empty() || added.starts_with("add check ") && added.ends_with(" not valid");
        return !(name.ends_with("_check") && is_check);
    }
    let requires = change.contains(" not null") && !change.contains(" default ");
    let changes = [" drop ", " rename ", " alter column ", " add constraint ", " type "];
    requires || changes.iter().any(|words| change.contains(words))
}

#[test]
fn migrations_after_the_first_only_add() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    for database in ["postgres", "sqlite"] {
        let entries = fs::read_dir(folder.join(database)).unwrap().map(|entry| entry.unwrap());
        let names: BTreeSet<_> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        assert!(names.contains(FIRST), "{database}: {names:?}");
        for name in names.iter().filter(|name| name.as_str() > FIRST) {
            let sql = fs::read_to_string(folder.join(database).join(name).join("up.sql")).unwrap();
            let breaking = breaking_statement(&sql);
            assert_eq!(
                breaking, None,
                "{database}/{name} would stop instances of the release before"
            );
        }
    }
}

#[test]
fn statements_that_break_the_release_before_are_found() {
    for sql in [
        "drop table batches;",
        "create table a (b text);\nALTER TABLE batches\n  DROP COLUMN label;",
        "alter table batches rename column label to name;",
        "alter table batches add column a bigint not null;",
        "alter table batches alter column label set not null;",
        "alter table batches drop constraint batches_pkey;",
        "alter table batches drop constraint a_check, drop column label;",
    ] {
        assert!(breaking_statement(sql).is_some(), "{sql}");
    }
    for sql in [
        "create table a (b bigint not null); create index c on a (b);",
        "alter table batches add column a text; -- drop it later",
        "alter table batches add column a bigint not null default 0;",
        "alter table batches drop constraint a_check,\n  add check (a > 0) not valid;",
        "create table a (b bigint); drop table a;",
    ] {
        assert_eq!(breaking_statement(sql), None, "{sql}");
    }
}

/// Each script of a migration, with its hash, as `sha256sum` prints it.
fn scripts(folder: &Path) -> BTreeMap<String, String> {
    let mut scripts = BTreeMap::new();
    for database in ["postgres", "sqlite"] {
        for entry in fs::read_dir(folder.join(database)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            for script in ["up.sql", "down.sql"] {
                let path = format!("{database}/{name}/{script}");
                let hash = Sha256::digest(fs::read(folder.join(&path)).unwrap());
                scripts.insert(path, hash.iter().map(|byte| format!("{byte:02x}")).collect());
            }
        }
    }
    scripts
}

#[test]
fn migrations_that_exist_are_not_changed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    let file = folder.join("checksums");
    let text = fs::read_to_string(&file).unwrap_or_default();
    let known = text.lines().map(|line| line.split_once("  ").unwrap());
    let known: BTreeMap<_, _> =
        known.map(|(hash, path)| (path.to_owned(), hash.to_owned())).collect();
    let present = scripts(&folder);
    for (path, hash) in &known {
        assert_eq!(
            present.get(path),
            Some(hash),
            "migrations/{path} was changed or removed: databases that have run it would differ from new ones, \
             with the same version. Add another migration"
        );
    }
    if env::var_os("UPDATE_DOCS").is_some() {
        let lines = present.iter().map(|(path, hash)| format!("{hash}  {path}\n"));
        fs::write(&file, lines.collect::<String>()).unwrap();
    } else {
        assert_eq!(known, present, "run this test with UPDATE_DOCS=1 to add the new migration");
    }
}
