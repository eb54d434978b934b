//! Within a crate, too, folders import only from folders below them.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{fs, path::Path};

/// The folders of a crate from top to bottom. Files beside the folders are above all of them.
const FOLDERS: &[(&str, &[&str])] = &[
    (
        "store",
        &[
            "claims",
            "withdrawals",
            "intake",
            "operator",
            "halts",
            "missing",
            "submission",
            "polling",
            "restored",
            "batch",
            "scheduling",
            "webhooks",
            "events",
            "service_history",
            "action_log",
            "sql",
        ],
    ),
    (
        "api",
        &[
            "openapi",
            "dashboard",
            "reads",
            "operators",
            "metrics",
            "gas_admins",
            "rewards",
            "transactions",
            "withdrawals",
            "webhooks",
            "tokens",
            "maintenance",
            "events",
            "scabbard",
            "batches",
            "pass_through",
            "group_commit",
            "state",
            "guard",
            "access",
            "rate_limits",
            "listener",
            "forwarding",
            "allow_list",
            "http",
        ],
    ),
    (
        "evm",
        &[
            "setup", "heads", "ahead", "send", "gas", "settle", "nonce", "sync", "price", "node",
            "calls", "signer", "values", "settings",
        ],
    ),
    ("service", &["server", "config"]),
];

/// Folders with a table that changes of batches write, and jobs and decisions above these.
const USED_FROM_BELOW: &[&str] = &["halts", "missing"];

#[test]
fn folders_import_only_from_lower_folders() {
    let mut found = Vec::new();
    for (name, folders) in FOLDERS {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates").join(name).join("src");
        for (position, folder) in folders.iter().enumerate() {
            check_folder(&source.join(folder), &folders[..position], &mut found);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_folder_has_a_place() {
    for (name, folders) in FOLDERS {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates").join(name).join("src");
        for entry in fs::read_dir(&source).unwrap() {
            let path = entry.unwrap().path();
            let folder = path.file_name().unwrap().to_str().unwrap();
            let is_for_tests = matches!(folder, "plans" | "snapshots");
            assert!(
                !path.is_dir() || is_for_tests || folders.contains(&folder),
                "crates/{name}/src/{folder} is not in the list"
            );
        }
    }
}

/// Finds imports from `higher` folders in all files of a folder.
fn check_folder(folder: &Path, higher: &[&str], found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check_folder(&path, higher, found);
        } else {
            check_file(&path, higher, found);
        }
    }
}

fn check_file(file: &Path, higher: &[&str], found: &mut Vec<String>) {
    let source = fs::read_to_string(file).unwrap();
    let source = source.split("#[cfg(test)]").next().unwrap();
    for import in imports(source) {
        let module = import.split([':', ' ', ';', ',', '}']).next().unwrap();
        if higher.contains(&module) && !USED_FROM_BELOW.contains(&module) {
            found.push(format!("{} imports from {module}, which is above it", file.display()));
        }
    }
}

/// What follows `crate::` in the imports, one entry for each member of a group.
fn imports(source: &str) -> Vec<&str> {
    let mut imports = Vec::new();
    for rest in source.split("use crate::").skip(1) {
        let statement = rest.split(';').next().unwrap();
        match statement.strip_prefix('{') {
            Some(group) => imports.extend(members(group)),
            None => imports.push(statement),
        }
    }
    imports
}

/// The members of a group of imports, without those of groups within it.
fn members(group: &str) -> Vec<&str> {
    let mut members = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                members.push(group[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    members
}

#[test]
fn members_of_nested_groups_are_found() {
    let source = "use crate::{Store, sql::{Rows, Statement}, batch::record};\nuse crate::intake;";
    assert_eq!(imports(source), ["Store", "sql::{Rows, Statement}", "batch::record", "intake"]);
}
