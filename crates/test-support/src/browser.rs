//! Scripts that use a page in a real browser.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::process::run;

/// Runs a script with Node.js until it has printed `passed`. The script gets the arguments, and folders for its
/// screenshots (the manual's if `UPDATE_DOCS` is set) and for the files of the browser.
///
/// # Panics
///
/// If the script fails, or if Node.js, the browser, or the modules that drive it are missing.
#[track_caller]
pub fn run_script(script: &Path, directory: &Path, manual: &Path, mut arguments: Value) {
    let is_for_manual = env::var_os("UPDATE_DOCS").is_some();
    let images = if is_for_manual { manual } else { directory };
    arguments["images"] = images.display().to_string().into();
    let mut command = Command::new(program("GRID_BATCH_TEST_NODE", &["node"]));
    command
        .arg(script)
        .env("GRID_BATCH_TEST_PLAYWRIGHT", modules())
        .env(
            "GRID_BATCH_TEST_CHROMIUM",
            program("GRID_BATCH_TEST_CHROMIUM", &["chromium", "google-chrome"]),
        )
        .env("GRID_BATCH_TEST_ARGUMENTS", arguments.to_string())
        .env("HOME", directory);
    let output = run(command);
    assert!(output.stdout.ends_with("passed\n"), "{}: {output:?}", script.display());
}

/// The program that a variable names, or the first of these that is installed.
fn program(variable: &str, usual: &[&str]) -> PathBuf {
    if let Some(path) = env::var_os(variable) {
        return path.into();
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders)
        .flat_map(|folder| usual.iter().map(move |name| folder.join(name)))
        .find(|path| path.exists());
    found.unwrap_or_else(|| {
        panic!(
            "{} was not found: install it, or set {variable}; scripts/test installs it",
            usual[0]
        )
    })
}

/// The folder with the modules that drive a browser.
fn modules() -> PathBuf {
    let folder = env::var_os("GRID_BATCH_TEST_PLAYWRIGHT").map(PathBuf::from);
    folder.unwrap_or_else(|| {
        panic!(
            "set GRID_BATCH_TEST_PLAYWRIGHT to a folder with the npm packages playwright-core and axe-core, as \
             scripts/test does"
        )
    })
}
