//! Flags of commands that do something.

use clap::{Arg, ArgAction, ArgMatches};

/// The flag of a command that only finds out what it would change.
pub(in crate::commands) fn dry_run_flag() -> Arg {
    Arg::new("dry-run")
        .long("dry-run")
        .action(ArgAction::SetTrue)
        .help("Only prints what would be changed, or why it is refused")
}

pub(in crate::commands) fn is_dry_run(matches: &ArgMatches) -> bool {
    matches.get_flag("dry-run")
}

/// The flag with the reason of what an operator does, which is logged.
pub(in crate::commands) fn reason_flag() -> Arg {
    Arg::new("reason")
        .long("reason")
        .value_name("TEXT")
        .required(true)
        .help("Reason, for the log of operators' actions")
}

pub(in crate::commands) fn reason(matches: &ArgMatches) -> &str {
    matches.get_one::<String>("reason").map_or("", String::as_str)
}
