//! `move-withdrawals`: moves open withdrawals to the present gas admins of their pools.

use std::{collections::BTreeMap, process::ExitCode};

use clap::{Arg, ArgAction, ArgMatches, Command};
use grid_batch_core::ServiceId;
use grid_batch_service::{Config, PoolMove, WithdrawalMoves};
use grid_batch_store::Store;
use grid_batch_withdrawals::{MoveObstacle, MoveStep};
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    flags,
    operator::{json_flag, print_json, print_wrapped, wants_json},
    print::print_stdout,
};

pub(crate) fn command() -> Command {
    Command::new("move-withdrawals")
        .about("Moves open withdrawals to the gas admins that their pools have in the settings now")
        .long_about(
            "Moves open withdrawals to the gas admins that their pools have in the settings now, to the \
             end of their queues and in the same order. Only withdrawals are moved for which nothing was \
             signed; the others end at their former gas admin, whose key should stay in gas_admins.*.key \
             until then. Without --yes, shows what would be moved. Servers may be running.",
        )
        .arg(
            Arg::new("yes").long("yes").action(ArgAction::SetTrue).help(
                "Moves them, if all nodes show that the former gas admin has sent nothing that is \
                 not stored",
            ),
        )
        .arg(json_flag())
        .args(flags::of_database())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let config = flags::load(matches)?;
    let store = Store::open_for_command(&config.database, config.store.clone())?;
    let moves = WithdrawalMoves::new(&config, &store)?;
    let mut results = Vec::new();
    for (from, pools) in moves.pools()? {
        let moved = if matches.get_flag("yes") {
            move_all(&moves, &config, &from)?
        } else {
            Moved { step: moves.examine(&from)?, refused: None, is_done: false }
        };
        results.push(GasAdminResult { from, pools, moved });
    }
    if wants_json(matches) {
        let results: Vec<Value> = results.iter().map(to_json).collect();
        print_json(&json!({ "database": config.database.to_string(), "gas_admins": results }));
    } else {
        print_stdout(format_args!("database {}", config.database));
        results.iter().for_each(print);
        if results.is_empty() {
            print_stdout("every open withdrawal is at the gas admin of its pool");
        }
    }
    let is_refused = results.iter().any(|result| result.moved.refused.is_some());
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The result of moving the withdrawals of one gas admin.
struct Moved {
    step: MoveStep,
    /// Why nothing was moved.
    refused: Option<String>,
    /// Whether they were moved; otherwise they can be.
    is_done: bool,
}

struct GasAdminResult {
    /// The former gas admin.
    from: ServiceId,
    /// Its pools that have another one now.
    pools: Vec<PoolMove>,
    moved: Moved,
}

fn move_all(moves: &WithdrawalMoves, config: &Config, from: &ServiceId) -> Result<Moved, Failure> {
    let examined = moves.examine(from)?;
    match moves.uncertainty(config, from, &examined)? {
        Some(refused) => Ok(Moved { step: examined, refused: Some(refused), is_done: false }),
        None => Ok(Moved { step: moves.run(from)?, refused: None, is_done: true }),
    }
}

/// How many withdrawals stay for each reason.
fn kept(step: &MoveStep) -> BTreeMap<MoveObstacle, usize> {
    let mut counts = BTreeMap::new();
    for (_, obstacle) in &step.kept {
        *counts.entry(*obstacle).or_default() += 1;
    }
    counts
}

fn to_json(GasAdminResult { from, pools, moved }: &GasAdminResult) -> Value {
    let pools: Vec<Value> = pools
        .iter()
        .map(|PoolMove { pool, to, open, .. }| {
            json!({ "pool": pool, "to": to.as_ref().map(ServiceId::as_str), "open": open })
        })
        .collect();
    let counts = kept(&moved.step);
    let of = |obstacle| counts.get(&obstacle).copied().unwrap_or_default();
    let kept: BTreeMap<&str, usize> =
        MoveObstacle::ALL.into_iter().map(|obstacle| (obstacle.as_str(), of(obstacle))).collect();
    let ids: Vec<String> = moved.step.moved.iter().map(|it| it.id.to_string()).collect();
    json!({
        "gas_admin": from.as_str(),
        "pools": pools,
        "moved": moved.is_done,
        "withdrawals": ids,
        "kept": kept,
        "refused": moved.refused,
    })
}

fn print(GasAdminResult { from, pools, moved }: &GasAdminResult) {
    print_stdout(format_args!("{from}"));
    for PoolMove { pool, to, open, .. } in pools {
        match to {
            Some(to) => print_wrapped(
                "    ",
                &format!("{open} open of pool {pool}, whose gas admin is now {to}"),
            ),
            None => print_wrapped(
                "    ",
                &format!(
                    "{open} open of pool {pool}, which is not configured: add it to pools.*.gas_admin"
                ),
            ),
        }
    }
    for (obstacle, count) in kept(&moved.step) {
        print_wrapped("    ", &format!("{count} stay: {}", explanation(obstacle)));
    }
    print_wrapped("    ", &result(moved));
}

fn result(Moved { step, refused, is_done }: &Moved) -> String {
    let count = step.moved.len();
    match (refused, is_done) {
        (Some(reason), _) => format!("nothing was moved: {reason}"),
        (None, true) => format!("{count} were moved"),
        (None, false) if count > 0 => format!("{count} can be moved: add --yes"),
        (None, false) => "none can be moved".to_owned(),
    }
}

/// Why withdrawals stay, and what to do about it.
fn explanation(obstacle: MoveObstacle) -> &'static str {
    match obstacle {
        MoveObstacle::Signed => {
            "a transaction is signed for them, which may still pay them; they end at this gas admin"
        }
        MoveObstacle::Submitting => {
            "they are being sent now, and those behind them must not overtake them; run the command again"
        }
        MoveObstacle::InDoubt => {
            "a transaction that is not stored may have been sent for them; with the key of this gas admin \
             the server finds out"
        }
        MoveObstacle::Held => "they are held; release them or decide, then run the command again",
    }
}
