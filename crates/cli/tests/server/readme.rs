//! The commands of `README.md`.

use std::process::Command;

use crate::GRID_BATCH;

const README: &str = include_str!("../../../../README.md");
const CI: &str = include_str!("../../../../.ci/run");

/// Cargo is not run again: the arguments go to the program that it has built for the tests. A test cannot run
/// all tests, which CI does with the same command.
#[test]
fn commands_of_the_readme_run() {
    let (_, rest) = README.split_once("```sh\n").unwrap();
    let (block, rest) = rest.split_once("```").unwrap();
    assert!(!rest.contains("```sh"), "README.md has a second block of commands");
    let [demo, test] = block.lines().collect::<Vec<_>>()[..] else { panic!("{block}") };
    let arguments = demo.strip_prefix("cargo run -- ").unwrap();
    let output = Command::new(GRID_BATCH.0).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(CI.contains(&format!("bash {test} ")), ".ci/run does not run {test}");
}
