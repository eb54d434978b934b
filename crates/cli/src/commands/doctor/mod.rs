//! `doctor`: what would keep a server from working, and what to do.

mod checks;
mod finding;

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use serde_json::json;

use crate::commands::{
    failure::Failure,
    flags,
    operator::{json_flag, print_json, print_wrapped, wants_json},
    print::print_stdout,
};
use finding::{CheckOutcome, Finding};

pub(crate) fn command() -> Command {
    Command::new("doctor")
        .about("Checks what a server needs: configuration, database, ledger, clock, limits, permissions")
        .long_about(
            "Checks what a server with this configuration needs: the database and its schema, the nodes of the \
             ledger, the clock, the limits of the system, and files that other users can read. Prints what is \
             wrong and what to do. Changes nothing. The exit code is 1 if there is a problem.",
        )
        .arg(json_flag())
        .args(flags::of_database())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let findings = checks::all(matches);
    let has_problem = findings.iter().any(|finding| finding.outcome == CheckOutcome::Problem);
    if wants_json(matches) {
        let findings: Vec<_> = findings.iter().map(Finding::json).collect();
        print_json(&json!({ "problem": has_problem, "findings": findings }));
    } else {
        findings.iter().for_each(print);
        let of = |outcome| findings.iter().filter(|finding| finding.outcome == outcome).count();
        let (problems, warnings) = (of(CheckOutcome::Problem), of(CheckOutcome::Warning));
        print_stdout(format_args!("problems: {problems}, warnings: {warnings}"));
    }
    Ok(if has_problem { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(finding: &Finding) {
    let Finding { check, outcome, text, advice } = finding;
    print_wrapped(&format!("{:<8} {check:<14} ", outcome.as_str()), text);
    if let Some(advice) = advice {
        print_wrapped(&" ".repeat(24), advice);
    }
}
