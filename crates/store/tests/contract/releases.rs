//! Instances of an earlier release may run beside this one, so the statements of the earlier release must run on the
//! tables of this one.
//!
//! `tests/releases` contains the statements of each release, which are the snapshots of its plan tests.

use std::fs;

use crate::fixture::{Database, on_both};

on_both! {
    statements_of_earlier_releases_run_on_these_tables,
}

fn statements_of_earlier_releases_run_on_these_tables(db: &Database) {
    drop(db.open());
    let file = if db.is_postgres() { "postgres.sql" } else { "sqlite.sql" };
    let (mut names, mut statements) = (Vec::new(), Vec::new());
    for release in fs::read_dir("tests/releases").unwrap() {
        let folder = release.unwrap().path();
        let text = fs::read_to_string(folder.join(file)).unwrap();
        for statement in text.strip_prefix("-- ").unwrap().split("\n\n-- ") {
            let (name, text) = statement.split_once('\n').unwrap();
            statements.push(preparing(text.trim(), statements.len(), db.is_postgres()));
            names.push(format!("{}: {name}", folder.display()));
        }
    }
    let failed: Vec<_> = names
        .iter()
        .zip(db.execute_each(&statements))
        .filter_map(|(name, result)| Some((name, result.err()?.to_string())))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(statements.len() > 100, "{} statements", statements.len());
}

/// Makes the database parse and plan a statement without running it.
fn preparing(statement: &str, number: usize, is_postgres: bool) -> String {
    if !is_postgres {
        return format!("explain {statement}");
    }
    let mut parts = statement.split('?');
    let first = parts.next().unwrap_or_default().to_owned();
    let numbered = (1..).zip(parts).fold(first, |text, (n, part)| format!("{text}${n}{part}"));
    format!("prepare earlier_{number} as {numbered}")
}
