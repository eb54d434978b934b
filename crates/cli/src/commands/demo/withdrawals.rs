//! `demo --ledger evm`.

use std::process::ExitCode;

use grid_batch_demo::{
    WithdrawalDemoOptions, WithdrawalProgress, WithdrawalReport, demonstrate_withdrawals,
};

use super::{DemoArgs, NOTHING_IS_LEFT, finish, progress_lines::ProgressLines, stop::StopSignal};

use crate::commands::{
    failure::Failure,
    operator::{LINE_WIDTH, wrapped},
    print::print_stderr,
};

pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode, Failure> {
    let options = options(args)?;
    if !args.json {
        let text = format!(
            "{} withdrawals, and a reward for two members, from five pools with four gas admins, on a \
             chain of one node. The server is killed once, and the gas price rises above the maximum.",
            options.withdrawals
        );
        wrapped("", &text, LINE_WIDTH).into_iter().for_each(print_stderr);
    }
    let stop = StopSignal::request(options.stop.clone())?;
    let mut lines = ProgressLines::start(args, &WithdrawalProgress::WORDS, options.stop.clone());
    let report = demonstrate_withdrawals(&options, |progress| {
        if !progress.event.is_empty() {
            lines.tell(&format!("{:6.1} s {}", progress.time.as_secs_f64(), progress.event));
        }
        lines.show(progress.time, &progress.explained(), progress.to_string());
    });
    lines.end();
    finish(args, report, WithdrawalReport::is_clean, &stop, NOTHING_IS_LEFT)
}

fn options(args: &DemoArgs) -> Result<WithdrawalDemoOptions, Failure> {
    let of_simulated = [
        ("services", args.services.is_some()),
        ("keep", args.keep.is_some()),
        ("seed", args.seed.is_some()),
        ("faults", args.faults.is_some()),
        ("keep-running", args.keep_running),
    ];
    if let Some((name, _)) = of_simulated.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::new(format!(
            "--{name} is for simulated ledgers; --ledger evm runs a real chain"
        )));
    }
    let defaults = WithdrawalDemoOptions::new(std::env::current_exe()?);
    Ok(WithdrawalDemoOptions {
        withdrawals: args.batches.map_or(defaults.withdrawals, |count| count as usize),
        database: args.database.clone(),
        log: args.log.clone(),
        ..defaults
    })
}
