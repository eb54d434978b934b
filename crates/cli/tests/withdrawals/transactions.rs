//! The commands of transactions that are no withdrawals.

use grid_batch_test_support::{
    process::{ProcessOutput, run},
    wait::wait_until,
};
use serde_json::{Value, json};

use super::commands::{client, json_of};
use crate::{
    GRID_BATCH,
    harness::{WithdrawalHarness, WithdrawalServer},
};

const RECIPIENT: &str = "0x00000000000000000000000000000000beef0009";

const TRANSFER: &[&str] = &["transaction", "send", "--account", "admin0", "--to", RECIPIENT];

/// Sends a transfer with further arguments.
fn send(server: &WithdrawalServer, more: &[&str]) -> ProcessOutput {
    client(server, &[TRANSFER, more].concat())
}

/// What the server has stored of a transaction.
fn stored(server: &WithdrawalServer, id: &str) -> Value {
    server.get(&format!("/v1/transactions/{id}")).json()
}

fn wait_for_state(server: &WithdrawalServer, id: &str, state: &str) {
    wait_until(&format!("{id} is {state}"), || stored(server, id)["state"] == state);
}

#[test]
fn transaction_is_sent_once_listed_and_shown() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve_calls(&[]);
    let transfer = ["--value", "5gwei", "--label", "a test", "--key", "invoice 17"];
    let sent = send(&server, &[&transfer[..], &["--wait"]].concat());
    assert_eq!(sent.exit_code, Some(0), "{sent:?}");
    let (id, state) = sent.stdout.trim().split_once(' ').unwrap();
    assert_eq!((id.len(), state), (32, "executed"));
    let balance = harness.anvil.rpc("eth_getBalance", json!([RECIPIENT, "latest"])).unwrap();
    assert_eq!(balance, "0x12a05f200");
    let again = send(&server, &[&transfer[..], &["--json"]].concat());
    assert_eq!(json_of(&again)["id"], id, "the key marks a repetition");
    let other = send(&server, &["--value", "6", "--key", "invoice 17"]);
    assert!(other.exit_code == Some(1) && other.stderr.contains("1026"), "{other:?}");

    let listed =
        client(&server, &["transaction", "list", "--account", "admin0", "--to", RECIPIENT]);
    let row = listed.stdout.lines().nth(1).unwrap_or_default();
    assert!(row.starts_with(&id[..12]) && row.ends_with("executed"), "{listed:?}");
    assert!(row.contains("0.000000005") && row.chars().count() <= 80, "{listed:?}");
    let none = client(&server, &["transaction", "list", "--state", "open"]);
    assert_eq!(none.stdout, "No transaction matches.\n");
    for name in [id, &id[..12]] {
        let shown = client(&server, &["transaction", "show", name]);
        assert!(shown.stdout.contains(id) && shown.stdout.contains("final as"), "{shown:?}");
        let shown = client(&server, &["transaction", "show", name, "--json"]);
        assert_eq!(json_of(&shown)["transactions"][0]["value"], "5000000000", "{shown:?}");
    }
    let unknown = client(&server, &["withdrawal", "show", id]);
    assert!(unknown.exit_code == Some(1) && unknown.stderr.contains("1025"), "{unknown:?}");
}

#[test]
fn what_an_account_may_not_send_is_refused() {
    let harness = WithdrawalHarness::new(1);
    let allowed = format!("admin0=0x{:040x}", 7);
    let server = harness.serve_with(&[("--gas-admins-may-send", allowed.as_str())]);
    let refused = send(&server, &["--value", "1"]);
    assert_eq!(refused.exit_code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("gas_admins.admin0.may_send"), "{refused:?}");
}

#[test]
fn account_needs_no_pool() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve_calls(&[("--pools-gas-admin", "")]);
    let sent = send(&server, &["--value", "1", "--wait"]);
    assert!(sent.stdout.contains("executed"), "{sent:?}");
}

#[test]
fn transactions_without_a_key_are_different() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve_calls(&[]);
    let [first, second] = [(); 2].map(|()| json_of(&send(&server, &["--value", "1", "--json"])));
    assert_ne!(first["id"], second["id"]);
    for transaction in [first, second] {
        wait_for_state(&server, transaction["id"].as_str().unwrap(), "executed");
    }
}

#[test]
fn parked_transaction_is_cancelled_and_retried() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.set_base_fee(300).unwrap();
    let server = harness.serve_calls(&[]);
    let sent = json_of(&send(&server, &["--value", "7", "--json"]));
    let id = sent["id"].as_str().unwrap();
    wait_for_state(&server, id, "parked");
    let act = |verb: &str| client(&server, &["transaction", verb, id, "--reason", "a test"]);
    let cancelled = act("cancel");
    assert!(cancelled.stdout.starts_with(id) && cancelled.exit_code == Some(0), "{cancelled:?}");
    wait_for_state(&server, id, "failed");
    let late = act("cancel");
    assert!(late.exit_code == Some(1) && late.stderr.contains("failed"), "{late:?}");
    harness.anvil.set_base_fee(10).unwrap();
    let retried = act("retry");
    assert!(retried.stdout.starts_with(id) && retried.exit_code == Some(0), "{retried:?}");
    wait_for_state(&server, id, "executed");
}

#[test]
fn fees_of_a_pending_transaction_are_raised_by_command() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve_calls(&[]);
    let sent = json_of(&send(&server, &["--value", "7", "--json"]));
    let id = sent["id"].as_str().unwrap();
    wait_for_state(&server, id, "pending");
    let speed_up =
        || client(&server, &["transaction", "speed-up", id, "--reason", "the auction ends"]);
    let asked = speed_up();
    assert!(asked.stdout.starts_with(id) && asked.exit_code == Some(0), "{asked:?}");
    let signed = || stored(&server, id)["transactions"].as_array().unwrap().clone();
    wait_until("a second transaction is sent", || {
        signed().len() == 2 && signed()[1]["sent_at"].is_string()
    });
    let fee = |at: usize| signed()[at]["max_fee_gwei"].as_str().unwrap().parse::<f64>().unwrap();
    assert!(fee(1) >= fee(0) * 1.125, "{:?}", signed());
    harness.anvil.start_mining().unwrap();
    harness.anvil.mine(3).unwrap();
    wait_for_state(&server, id, "executed");
    assert_eq!(harness.nonce(0), 1);
    let late = speed_up();
    assert!(late.exit_code == Some(1) && late.stderr.contains("executed"), "{late:?}");
}

/// Creates a token that may send this, and returns it.
fn token(harness: &WithdrawalHarness, name: &str, may_send: &[&str]) -> String {
    let rules = may_send.iter().flat_map(|rule| ["--may-send", rule]);
    let create =
        ["token", "create", "--name", name, "--scope", "submit,read", "--reason", "a test"];
    let created = run(harness.database_only(&Vec::from_iter(create.into_iter().chain(rules))));
    assert_eq!(created.exit_code, Some(0), "{created:?}");
    created.stdout.trim().to_owned()
}

#[test]
fn token_sends_only_what_it_may_and_no_more_a_day() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve_calls(&[("--access-mode", "tokens")]);
    let limited = token(&harness, "shop", &[RECIPIENT, "7000000000/day"]);
    let other = token(&harness, "other", &["create"]);
    let send = |token: &str, value: &str| {
        let url = format!("http://{}", server.address);
        let mut command =
            GRID_BATCH.command([TRANSFER, &["--value", value, "--url", &url]].concat());
        command.env("GRID_BATCH_TOKEN", token);
        run(command)
    };
    wait_until("the server knows the token", || send(&limited, "4gwei").exit_code == Some(0));
    let exceeded = send(&limited, "4gwei");
    assert!(exceeded.stderr.contains("has 3000000000 wei left of its limit"), "{exceeded:?}");
    assert_eq!(send(&limited, "3gwei").exit_code, Some(0));
    let refused = send(&other, "1");
    assert!(refused.stderr.contains("the token may not send this to"), "{refused:?}");
    let listed = run(harness.database_only(&["token", "list"]));
    assert!(listed.stdout.contains(&format!("may send {RECIPIENT} 7000000000/day")), "{listed:?}");
    let invalid = ["token", "create", "--name", "x", "--scope", "submit", "--may-send", "5gwei"];
    let invalid = run(harness.database_only(&[&invalid[..], &["--reason", "a test"]].concat()));
    assert!(invalid.exit_code == Some(1) && invalid.stderr.contains("may_send"), "{invalid:?}");
}

#[test]
fn account_transfers_no_more_coins_a_day_than_it_may() {
    let harness = WithdrawalHarness::new(1);
    let may_send = "admin0=*,admin0=5000000000/day";
    let server = harness.serve_with(&[("--gas-admins-may-send", may_send)]);
    let sent = send(&server, &["--value", "4gwei", "--wait"]);
    assert!(sent.stdout.contains("executed"), "{sent:?}");
    let exceeded = send(&server, &["--value", "2gwei"]);
    assert_eq!(exceeded.exit_code, Some(4), "{exceeded:?}");
    assert!(
        exceeded.stderr.contains("has 1000000000 wei left of its limit of 5000000000"),
        "{exceeded:?}"
    );
    assert!(exceeded.stderr.contains("1042"), "{exceeded:?}");
    let sent = send(&server, &["--value", "1gwei", "--wait"]);
    assert!(sent.stdout.contains("executed"), "{sent:?}");
}

#[test]
fn unanswered_request_prints_its_key() {
    let send = |more: &[&str]| {
        run(GRID_BATCH.command([TRANSFER, more, &["--url", "http://127.0.0.1:1"]].concat()))
    };
    let wrong = send(&["--value", "1.5"]);
    assert_eq!(wrong.exit_code, Some(2), "{wrong:?}");
    let gone = send(&["--value", "1", "--key", "invoice 17"]);
    assert_eq!(gone.exit_code, Some(4), "{gone:?}");
    assert!(gone.stderr.contains("--key 'invoice 17'"), "a repetition sends once: {gone:?}");
}
