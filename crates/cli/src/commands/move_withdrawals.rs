//! `move-withdrawals`: moves open withdrawals to the present gas admins of their pools.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::commands::{
    arguments::ActionArgs,
    failure::Failure,
    operator::print_wrapped,
    print::print_stdout,
    remote::{Server, entries, field},
};

pub(crate) fn run(action: &ActionArgs) -> Result<ExitCode, Failure> {
    let server = Server::to_act(&action.source)?;
    let moves = server.act(&action.asked, "/v1/database/move-withdrawals", &[], json!({}));
    let moves = moves.map_err(Server::failed)?;
    let gas_admins = entries(&moves, "data");
    action.output.show_list("gas_admins", gas_admins, || {
        gas_admins.iter().for_each(print);
        if gas_admins.is_empty() {
            let place = server.place();
            print_stdout(format_args!(
                "every open withdrawal{place} is at the gas admin of its pool"
            ));
        }
    });
    let is_refused = gas_admins.iter().any(|it| !it["refused"].is_null());
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(gas_admin: &Value) {
    print_stdout(field(gas_admin, "gas_admin"));
    for pool in entries(gas_admin, "pools") {
        let open = format!("{} open of pool {}", field(pool, "open"), field(pool, "pool"));
        let rest = match pool["to"].as_str() {
            Some(to) => format!("whose gas admin is now {to}"),
            None => "which is not configured: add it to pools.*.gas_admin".to_owned(),
        };
        print_wrapped("    ", &format!("{open}, {rest}"));
    }
    for (obstacle, count) in gas_admin["kept"].as_object().into_iter().flatten() {
        if *count != 0 {
            print_wrapped("    ", &format!("{count} stay: {}", explanation(obstacle)));
        }
    }
    print_wrapped("    ", &result(gas_admin));
}

fn result(gas_admin: &Value) -> String {
    let count = entries(gas_admin, "withdrawals").len();
    match gas_admin["refused"].as_str() {
        Some(reason) => format!("nothing was moved: {reason}"),
        None if gas_admin["moved"] == true => format!("{count} were moved"),
        None => format!("nothing changed: {count} can be moved"),
    }
}

/// Why withdrawals stay, and what to do about it.
fn explanation(obstacle: &str) -> &str {
    match obstacle {
        "signed" => {
            "a transaction is signed for them, which may still pay them; they end at this gas admin"
        }
        "submitting" => {
            "they are being sent now, and those behind them must not overtake them; run the command again"
        }
        "in_doubt" => {
            "a transaction that is not stored may have been sent for them; give the server the key of this gas \
             admin, so that it can find out"
        }
        "held" => "they are held; release them or decide, then run the command again",
        other => other,
    }
}
