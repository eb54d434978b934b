//! Rules follow from the facts of a ledger. Only what builds an adapter knows which kind of ledger it is for.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use grid_batch_tests::sources::{read, root, source_files, without_tests};

/// The crates that work with any ledger.
const CRATES: &[&str] =
    &["core", "queuer", "submitter", "poller", "store", "claims", "api", "service"];

/// The files that name a kind of ledger, and why they may. A path that ends in `/` is a directory.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/service/src/config/ledger_type.rs", "the table of known ledgers"),
    ("crates/service/src/server/mod.rs", "which adapter is built"),
    ("crates/service/src/server/ledger/", "how each adapter is built"),
    ("crates/api/src/http/dialect.rs", "the first part of a path of the HTTP interface"),
    ("crates/api/src/scabbard/", "a path of the HTTP interface"),
];

#[test]
fn nothing_asks_for_the_kind_of_ledger() {
    let mut found = Vec::new();
    for (name, source) in sources().filter(|(name, _)| !is_allowed(name)) {
        for (number, line) in (1..).zip(without_tests(&source).lines()) {
            if names_a_kind(line) {
                found.push(format!("{name}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(
        found.is_empty(),
        "derive the rule from `LedgerFacts`, see docs/architecture.md:\n{}",
        found.join("\n")
    );
}

#[test]
fn listed_files_name_a_kind_of_ledger() {
    for (allowed, _) in ALLOWED {
        let named = sources().any(|(name, source)| {
            name.starts_with(allowed) && without_tests(&source).lines().any(names_a_kind)
        });
        assert!(named, "{allowed} names no kind of ledger and need not be listed");
    }
}

#[test]
fn only_names_of_kinds_in_code_are_found() {
    for line in ["Some(\"evm\") =>", "kind == LedgerKind::Sawtooth", "x != \"scabbard\""] {
        assert!(names_a_kind(line), "{line}");
    }
    for line in ["/// `\"evm\"`", "#[cfg(feature = \"evm\")]", "\"for sawtooth: the nodes\""] {
        assert!(!names_a_kind(line), "{line}");
    }
}

/// The names and texts of the sources of these crates.
fn sources() -> impl Iterator<Item = (String, String)> {
    let files = source_files().into_iter().map(|file| {
        let name = file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        (name, read(&file))
    });
    files.filter(|(name, _)| CRATES.iter().any(|of| name.starts_with(&format!("crates/{of}/src/"))))
}

fn is_allowed(name: &str) -> bool {
    ALLOWED.iter().any(|(allowed, _)| name.starts_with(allowed))
}

fn names_a_kind(line: &str) -> bool {
    let code = line.split("//").next().unwrap();
    let names = ["\"sawtooth\"", "\"scabbard\"", "\"evm\"", "LedgerKind"];
    !code.contains("feature = ") && names.iter().any(|name| code.contains(name))
}
