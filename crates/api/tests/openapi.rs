//! `docs/openapi.json` is what the server answers.

use std::{env, fs, path::Path};

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
