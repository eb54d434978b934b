//! `docs/openapi.json` is what the server answers.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use grid_batch_api::openapi_json;

#[test]
fn description_of_the_interface_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let expected = openapi_json();
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &expected).unwrap();
    }
    let actual = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        actual == expected,
        "docs/openapi.json is not up to date: UPDATE_DOCS=1 cargo test -p grid-batch-api --test openapi"
    );
}

/// The description names a type by the last part of its path, so the second one of a name would replace the first.
#[test]
fn types_of_the_description_have_different_names() {
    let mut seen = BTreeSet::new();
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = fs::read_to_string(&file).unwrap();
        for derived in text.split("ToSchema)]").skip(1) {
            let words = derived.split(|it: char| !it.is_alphanumeric() && it != '_');
            let mut words = words.skip_while(|word| !["struct", "enum"].contains(word)).skip(1);
            let name = words.next().unwrap().to_owned();
            assert!(seen.insert(name.clone()), "{} has another {name}", file.display());
        }
    }
    assert!(seen.len() > 50, "{seen:?}");
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|it| it == "rs")).collect()
}
