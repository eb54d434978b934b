//! `withdrawal cancel`: requests that withdrawals be cancelled.

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use grid_batch_core::queries::ItemIdPrefix;
use serde_json::{Value, json};

use super::{
    list,
    name::{act, named, withdrawals_argument},
};
use crate::commands::{
    failure::Failure,
    operator::{is_dry_run, print_json, wants_json},
    print::{print_stderr, print_stdout},
    remote::{self, Server, field},
};

pub(super) fn command() -> Command {
    Command::new("cancel")
        .about("Cancels withdrawals, if that is still possible")
        .long_about(
            "Cancels withdrawals, if that is still possible. One that is not signed fails when its turn comes. \
             For one that was sent, a transaction that pays nothing is sent with the same nonce and a higher fee; \
             the transaction that is mined first decides. A cancelled withdrawal has failed and can be retried.",
        )
        .arg(withdrawals_argument().required(true))
        .args(remote::action_flags())
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    remote::check_withdrawals(matches)?;
    act_on_each(matches, &Server::to_act(matches)?, "cancel")
}

/// Requests this action for each withdrawal that is named, and reports each.
pub(super) fn act_on_each(
    matches: &ArgMatches,
    server: &Server,
    action: &str,
) -> Result<ExitCode, Failure> {
    let (mut done, mut refused) = (Vec::<Value>::new(), Vec::<(&ItemIdPrefix, Failure)>::new());
    for name in named(matches) {
        match act(matches, server, name, action) {
            Ok(withdrawal) => done.push(withdrawal),
            Err(error) => refused.push((name, Server::failed(error))),
        }
    }
    if wants_json(matches) {
        let refusal = |(name, failure): &(&ItemIdPrefix, Failure)| json!({"id": name.to_string(), "reason": failure.to_string()});
        let refused: Vec<_> = refused.iter().map(refusal).collect();
        print_json(&json!({
            "dry_run": is_dry_run(matches),
            "withdrawals": done,
            "refused": refused,
        }));
    } else {
        let would = if is_dry_run(matches) { "nothing changed: " } else { "" };
        for withdrawal in &done {
            let (id, state) = (field(withdrawal, "id"), list::state(withdrawal));
            print_stdout(format_args!("{would}{id} {state}"));
        }
        for (name, failure) in &refused {
            print_stderr(format_args!("grid-batch: {name}: {failure}"));
        }
    }
    Ok(refused.first().map_or(ExitCode::SUCCESS, |(_, failure)| failure.exit_code()))
}
