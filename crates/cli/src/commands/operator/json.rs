//! JSON for programs instead of text for people.

use clap::{Arg, ArgAction, ArgMatches};
use serde_json::Value;

use crate::commands::print::print_stdout;

pub(in crate::commands) fn json_flag() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help(
        "Print a JSON object instead of text, with the fields of the interface (docs/http.md)",
    )
}

pub(in crate::commands) fn wants_json(matches: &ArgMatches) -> bool {
    matches.get_flag("json")
}

pub(in crate::commands) fn print_json(document: &Value) {
    print_stdout(format_args!("{document:#}"));
}
