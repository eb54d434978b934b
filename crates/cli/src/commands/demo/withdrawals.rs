//! `demo --ledger evm`.

use std::process::ExitCode;

use clap::{ArgMatches, parser::ValueSource};
use grid_batch_demo::{WithdrawalDemoOptions, demonstrate_withdrawals};

use crate::commands::{
    failure::Failure,
    print::{print_stderr, print_stdout},
};

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let options = options(matches)?;
    let json = matches.get_flag("json");
    if !json {
        print_stderr(format_args!(
            "{} withdrawals, and a reward for two members, from five pools with four gas admins, on a \
             chain of one node. The server is killed once, and the gas price rises above the maximum.",
            options.withdrawals
        ));
    }
    let report = demonstrate_withdrawals(&options, |progress| {
        if !json {
            print_stderr(progress);
        }
    })?;
    if json {
        print_stdout(serde_json::to_string(&report)?);
    } else {
        print_stdout(format_args!("\n{report}"));
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn options(matches: &ArgMatches) -> Result<WithdrawalDemoOptions, Failure> {
    for name in ["services", "keep", "seed", "faults"] {
        if matches.value_source(name) == Some(ValueSource::CommandLine) {
            return Err(Failure::new(format!(
                "--{name} is for simulated ledgers; --ledger evm runs a real chain"
            )));
        }
    }
    let defaults = WithdrawalDemoOptions::new(std::env::current_exe()?);
    Ok(WithdrawalDemoOptions {
        withdrawals: matches
            .get_one::<u32>("batches")
            .map_or(defaults.withdrawals, |count| *count as usize),
        database: matches.get_one::<String>("database").cloned(),
        log: matches.get_one::<String>("log").cloned().unwrap_or(defaults.log),
        ..defaults
    })
}
