//! `docs/settings.md` is what the table of settings says.

use std::{env, fs, path::Path};

use grid_batch_service::settings_reference;

/// Few people change more. What follows from other settings, or from what was measured, is no setting.
#[test]
fn there_are_at_most_70_settings() {
    const MOST: usize = 70;
    let count = settings_reference().lines().filter(|line| line.starts_with("**`")).count();
    assert!(count <= MOST, "{count} settings");
}

#[test]
fn reference_of_settings_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let expected = settings_reference();
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &expected).unwrap();
    }
    let actual = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        actual == expected,
        "docs/settings.md is not up to date: UPDATE_DOCS=1 cargo test -p grid-batch-service --features evm \
         --test settings_reference"
    );
}
