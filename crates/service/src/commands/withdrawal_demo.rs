//! `demo --ledger evm`.

use std::process::ExitCode;

use clap::ArgMatches;

use crate::commands::failure::Failure;

#[cfg(not(feature = "evm"))]
pub(crate) fn run(_: &ArgMatches) -> Result<ExitCode, Failure> {
    Err(grid_batch_service::StartError::NotBuilt { kind: "evm" }.into())
}

#[cfg(feature = "evm")]
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    use grid_batch_service::demo::demonstrate_withdrawals;

    use crate::commands::output::{say, say_aside};

    let options = options(matches)?;
    let json = matches.get_flag("json");
    if !json {
        say_aside(format_args!(
            "{} withdrawals and two rewards from five pools with four gas admins, on a chain of one \
             node; the service is killed on the way, and the price of gas rises above the cap.",
            options.withdrawals
        ));
    }
    let report = demonstrate_withdrawals(&options, |progress| {
        if !json {
            say_aside(progress);
        }
    })?;
    if json {
        say(serde_json::to_string(&report)?);
    } else {
        say(format_args!("\n{report}"));
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(feature = "evm")]
fn options(
    matches: &ArgMatches,
) -> Result<grid_batch_service::demo::WithdrawalDemoOptions, Failure> {
    use grid_batch_service::demo::WithdrawalDemoOptions;

    for name in ["services", "keep", "seed", "faults"] {
        if matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine) {
            return Err(Failure::new(format!(
                "--{name} is for simulated ledgers; the chain of --ledger evm is a genuine one"
            )));
        }
    }
    let usual = WithdrawalDemoOptions::new(std::env::current_exe()?);
    Ok(WithdrawalDemoOptions {
        withdrawals: matches
            .get_one::<u32>("batches")
            .map_or(usual.withdrawals, |count| *count as usize),
        database: matches.get_one::<String>("database").cloned(),
        log: matches.get_one::<String>("log").cloned().unwrap_or(usual.log),
        ..usual
    })
}
