//! `doctor`: what would keep a server from working, and what to do.

mod checks;
mod finding;

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::commands::{
    arguments::Output,
    failure::Failure,
    flags::{OfDatabase, SettingFlags},
    operator::print_wrapped,
    print::print_stdout,
};
use finding::{CheckOutcome, Finding};

/// Checks what a server needs: configuration, database, ledger, clock, limits, permissions
///
/// Those are the database and its schema, the nodes of the ledger, the clock, the limits of the system, and files that
/// other users can read. Prints what is wrong and what to do. Changes nothing. The exit code is 1 if there is a problem.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    settings: SettingFlags<OfDatabase>,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let findings = checks::all(&args.settings);
    let has_problem = findings.iter().any(|finding| finding.outcome == CheckOutcome::Problem);
    args.output.show(&json!({ "problem": has_problem, "findings": findings }), || {
        findings.iter().for_each(print);
        let of = |outcome| findings.iter().filter(|finding| finding.outcome == outcome).count();
        let (problems, warnings) = (of(CheckOutcome::Problem), of(CheckOutcome::Warning));
        print_stdout(format_args!("problems: {problems}, warnings: {warnings}"));
    });
    Ok(if has_problem { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(finding: &Finding) {
    let Finding { check, outcome, text, advice } = finding;
    print_wrapped(&format!("{:<8} {check:<14} ", outcome.as_str()), text);
    if let Some(advice) = advice {
        print_wrapped(&" ".repeat(24), advice);
    }
}
