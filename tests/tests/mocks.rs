//! Each trait of a layer has a mock, with which the layer above is tested.

use std::collections::BTreeSet;

use grid_batch_tests::sources::{read, source_files, without_tests};

/// The traits without a mock, and why.
const WITHOUT_MOCK: &[(&str, &str)] = &[
    ("EventReceiver", "its one method is that of a collector, which tests are"),
    ("Harness", "it is a part of tests"),
    ("Maintenance", "it is tested with the interface of a server and its database"),
    ("ScopeId", "its values are ids, such as `GlobalScopeId`"),
    ("SettingValue", "its values are those of settings"),
    ("ShutdownHandle", "`MockRunningSubmitter` has it"),
    ("TransactionSigner", "it is tested with keys"),
    ("Transport", "it is tested with a server, and with the interface in its own process"),
];

#[test]
fn each_trait_has_a_mock() {
    let (traits, mocks) = (public_traits(), mocks());
    assert!(traits.len() > 30, "only {traits:?} were found");
    for name in &traits {
        let is_listed = WITHOUT_MOCK.iter().any(|(listed, _)| listed == name);
        assert!(
            mocks.contains(name) != is_listed,
            "the trait {name} needs a mock in the module `mocks` of its crate, or a reason in WITHOUT_MOCK, not both"
        );
    }
    for (listed, _) in WITHOUT_MOCK {
        assert!(traits.contains(*listed), "{listed} is no public trait");
    }
}

fn public_traits() -> BTreeSet<String> {
    let name = |line: &str| Some(word(line.strip_prefix("pub trait ")?));
    let of = |source: String| without_tests(&source).lines().filter_map(name).collect::<Vec<_>>();
    source_files().iter().flat_map(|file| of(read(file))).collect()
}

/// What the modules `mocks` have: mocks that `mock!` makes there, and those of `automock` that they export.
fn mocks() -> BTreeSet<String> {
    let files = source_files().into_iter().filter(|file| file.ends_with("mocks.rs"));
    let of = |source: String| {
        let written = source.lines().filter_map(|line| line.strip_prefix("    pub ")).map(word);
        let exported = source.split("Mock").skip(1).map(word);
        written.chain(exported).collect::<Vec<_>>()
    };
    files.flat_map(|file| of(read(&file))).collect()
}

/// The beginning of the text, as far as it is a name.
fn word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric()).collect()
}
