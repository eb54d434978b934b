//! Commands with placeholders in `docs`, in blocks `text`, exist with the flags that the pages show.

use std::{fs, path::Path};

use crate::harness::BatchHarness;

/// The commands that have commands of their own.
const GROUPS: &[&str] =
    &["batch", "key", "ledger", "token", "transaction", "webhooks", "withdrawal"];

/// The words of each line in a block `text` that starts with the program's name, without the comment.
fn listed_commands(page: &str) -> Vec<Vec<String>> {
    let mut is_text = false;
    let mut commands = Vec::new();
    for line in page.lines().map(str::trim) {
        if let Some(language) = line.strip_prefix("```") {
            is_text = language == "text";
        } else if is_text && let Some(rest) = line.strip_prefix("grid-batch ") {
            let command = rest.split(['#', '|']).next().unwrap();
            commands.push(command.split_whitespace().map(str::to_owned).collect());
        }
    }
    commands
}

#[test]
fn listed_commands_exist_with_their_flags() {
    let harness = BatchHarness::sawtooth();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut count = 0;
    for page in ["operations.md", "withdrawals.md", "transactions.md", "guides/security.md"] {
        for command in listed_commands(&fs::read_to_string(folder.join(page)).unwrap()) {
            let names = if GROUPS.contains(&command[0].as_str()) { 2 } else { 1 };
            let mut arguments: Vec<&str> = command[..names].iter().map(String::as_str).collect();
            arguments.push("--help");
            let help = harness.run_command(&arguments);
            assert_eq!(help.exit_code, Some(0), "{page}: {command:?}: {help:?}");
            for flag in command.iter().filter(|word| word.starts_with("--")) {
                assert!(help.stdout.contains(flag.as_str()), "{page}: {command:?} has no {flag}");
            }
            count += 1;
        }
    }
    assert!(count > 30, "the pages list only {count} commands");
}
