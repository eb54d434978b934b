//! What a command asks the store to do, by whom and why.

use std::{fs, os::unix::fs::MetadataExt};

use clap::{Arg, ArgAction, ArgMatches};
use grid_batch_core::{ActionSource, Operator, OperatorAction, OperatorTarget, OperatorVerb};

use super::reason;

/// The flag of a command that only finds out what it would change.
pub(in crate::commands) fn dry_run_flag() -> Arg {
    Arg::new("dry-run")
        .long("dry-run")
        .action(ArgAction::SetTrue)
        .help("Only says what would be changed, or why it is refused")
}

pub(in crate::commands) fn is_dry_run(matches: &ArgMatches) -> bool {
    matches.get_flag("dry-run")
}

/// The action that a command asks for.
pub(in crate::commands) fn operator_action(
    matches: &ArgMatches,
    verb: OperatorVerb,
    target: OperatorTarget,
) -> OperatorAction {
    OperatorAction {
        verb,
        target,
        reason: reason(matches).map(str::to_owned),
        operator: Operator { name: user_name(), source: ActionSource::CommandLine, instance: None },
        dry_run: is_dry_run(matches),
    }
}

/// The name of the user that runs this process, or the number of a user without a name.
fn user_name() -> String {
    let Ok(process) = fs::metadata("/proc/self") else { return "unknown".to_owned() };
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_of(process.uid(), &users).unwrap_or_else(|| format!("uid {}", process.uid()))
}

fn name_of(uid: u32, users: &str) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_is_found_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n";
        assert_eq!(name_of(1000, users).as_deref(), Some("alice"));
        assert_eq!(name_of(7, users), None);
    }
}
