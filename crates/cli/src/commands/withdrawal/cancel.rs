//! `withdrawal cancel`: requests that withdrawals be cancelled.

use std::process::ExitCode;

use clap::Args;
use grid_batch_core::queries::ItemIdPrefix;
use serde_json::{Value, json};

use super::{list, name::act};
use crate::commands::{
    arguments::ActionArgs,
    failure::Failure,
    print::{print_stderr, print_stdout},
    remote::{self, Server, field},
};

/// Cancels withdrawals, if that is still possible
///
/// One that is not signed fails when its turn comes. For one that was sent, a transaction that pays nothing is sent with
/// the same nonce and a higher fee; the transaction that is mined first decides. A cancelled withdrawal has failed and
/// can be retried.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Ids of withdrawals, or at least their first 8 digits
    #[arg(required = true)]
    withdrawal: Vec<ItemIdPrefix>,
    #[command(flatten)]
    action: ActionArgs,
}

pub(super) fn run(CancelArgs { withdrawal, action }: &CancelArgs) -> Result<ExitCode, Failure> {
    remote::check_withdrawals(&action.source)?;
    act_on_each(withdrawal, action, &Server::to_act(&action.source)?, "cancel")
}

/// Requests this action for each withdrawal that is named, and reports each.
pub(super) fn act_on_each(
    named: &[ItemIdPrefix],
    ActionArgs { asked, output, .. }: &ActionArgs,
    server: &Server,
    action: &str,
) -> Result<ExitCode, Failure> {
    let (mut done, mut refused) = (Vec::<Value>::new(), Vec::<(&ItemIdPrefix, Failure)>::new());
    for name in named {
        match act(asked, server, name, action) {
            Ok(withdrawal) => done.push(withdrawal),
            Err(error) => refused.push((name, Server::failed(error))),
        }
    }
    let refusal = |(name, failure): &(&ItemIdPrefix, Failure)| json!({"id": name.to_string(), "reason": failure.to_string()});
    let refusals: Vec<Value> = refused.iter().map(refusal).collect();
    let dry_run = asked.is_dry_run();
    let json = json!({ "dry_run": dry_run, "withdrawals": done, "refused": refusals });
    output.show(&json, || {
        let would = if dry_run { "nothing changed: " } else { "" };
        for withdrawal in &done {
            let (id, state) = (field(withdrawal, "id"), list::state(withdrawal));
            print_stdout(format_args!("{would}{id} {state}"));
        }
        for (name, failure) in &refused {
            print_stderr(format_args!("grid-batch: {name}: {failure}"));
        }
    });
    Ok(refused.first().map_or(ExitCode::SUCCESS, |(_, failure)| failure.exit_code()))
}
