//! Rules follow from the facts of a ledger. Only what builds an adapter knows which kind of ledger it is for.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use grid_batch_service::{LedgerType, Origin, SETTINGS, SettingValues};
use grid_batch_tests::{
    declared_facts,
    sources::{read, root, source_files, without_tests},
};

/// The crates that work with any ledger.
const CRATES: &[&str] = &[
    "core",
    "queuer",
    "submitter",
    "poller",
    "store",
    "claims",
    "ledger-check",
    "monitoring",
    "api",
    "service",
];

/// The files that name a kind of ledger, and why they may. A path that ends in `/` is a directory.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/service/src/config/ledger_type.rs", "the names that other programs must not register"),
    ("crates/service/src/server/ledger/", "the adapters that are compiled in"),
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
fn table_of_facts_is_right() {
    let page = read(&root().join("docs/architecture.md"));
    let table = page.split("## Facts of a ledger").nth(1).unwrap().split("\n## ").next().unwrap();
    let row = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut rows = table.lines().filter(|line| line.starts_with('|')).map(row);
    let names = rows.next().unwrap();
    let rows: Vec<Vec<String>> = rows.skip(1).collect();
    for ledger in LedgerType::known() {
        let column = names.iter().position(|name| name == ledger.name()).unwrap();
        let written: Vec<(&str, &str)> =
            rows.iter().map(|row| (row[0].trim_matches('`'), row[column].as_str())).collect();
        let expected = table_of(ledger);
        let expected: Vec<(&str, &str)> =
            expected.iter().map(|(fact, value)| (*fact, value.as_str())).collect();
        assert_eq!(written, expected, "{}", ledger.name());
    }
}

/// The column of a ledger. What changes with a setting is a setting.
fn table_of(ledger: &LedgerType) -> Vec<(&'static str, String)> {
    let with = |keeps_order| declared_facts(ledger, keeps_order, Duration::from_secs(1)).unwrap();
    let (without, all) = (with(false), with(true));
    let yes = |value: bool| if value { "yes" } else { "no" }.to_owned();
    let late = if all.late_arrival_limit.is_zero() { "0" } else { "setting" };
    let order = if all.keeps_order == without.keeps_order {
        yes(all.keeps_order)
    } else {
        "setting".to_owned()
    };
    vec![
        ("second_arrival", format!("{:?}", all.second_arrival)),
        ("proves_absence", yes(all.proves_absence)),
        ("late_arrival_limit", late.to_owned()),
        ("statuses_survive_restart", yes(all.statuses_survive_restart)),
        ("reports_earlier_invalid", yes(all.reports_earlier_invalid)),
        ("keeps_order", order),
        ("enforces_declared_access", yes(all.enforces_declared_access)),
        ("one_node_for_service", yes(all.one_node_for_service)),
        ("batches_expire", yes(all.batches_expire)),
        ("has_events", yes(all.has_events)),
        ("compares_states", yes(all.compares_states)),
        ("tells_identity", yes(all.tells_identity)),
        ("checks_keys", yes(all.checks_keys)),
        ("signs_batches", yes(all.signs_batches)),
        ("quiet_after", quiet_after(ledger)),
    ]
}

/// It depends on a setting of one ledger only.
fn quiet_after(ledger: &LedgerType) -> String {
    let with = |resend_after: &str| {
        let setting = SETTINGS.named("evm.resend_after");
        let given = setting.map(|setting| setting.given(Origin::Default, resend_after));
        let settings = SettingValues::defaults(SETTINGS.clone()).override_with(given);
        ledger.facts(&settings).unwrap().quiet_after
    };
    match (with("20s"), with("30s")) {
        (None, None) => "none".to_owned(),
        (Some(short), Some(long)) if short == long => format!("{long:?}"),
        _ => "setting".to_owned(),
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
