//! The sources of the workspace, for tests that search them.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The files of code of all crates, without their tests.
pub fn source_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        collect(&entry.unwrap().path().join("src"), &mut found);
    }
    assert!(found.len() > 100, "only {} files were found", found.len());
    found
}

/// The source before its unit tests.
pub fn without_tests(source: &str) -> &str {
    source.split("\n#[cfg(test)]\nmod tests {").next().unwrap()
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            found.push(path);
        }
    }
}

/// The text of a file.
pub fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}
