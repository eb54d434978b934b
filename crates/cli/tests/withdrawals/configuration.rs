//! Invalid settings, and secrets that must not be shown.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use grid_batch_test_support::process::run;

use crate::{GRID_BATCH, harness::WithdrawalHarness};

#[test]
fn invalid_setting_is_named_and_no_database_is_created() {
    let harness = WithdrawalHarness::new(1);
    let (admin, pool) = ("a=env:KEY0", format!("{}=a", harness.pools[0].address()));
    let typo = pool.replacen("0x", "0xZ", 1);
    let twice = format!("{0}=admin0,{0}=admin0", harness.pools[0].address());
    let other = format!("0x{:040x}=5", 7);
    let bad = harness.path().join("bad.key");
    fs::write(&bad, "not a key at all").unwrap();
    fs::set_permissions(&bad, Permissions::from_mode(0o600)).unwrap();
    let file = format!("a={}", bad.display());
    let missing = format!("a={}", harness.path().join("missing.key").display());
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("--gas-admins-key", ""), ("--pools-gas-admin", "")], "pools.*.gas_admin is not set"),
        (&[("--ledger-urls", "")], "ledger.urls is not set"),
        (&[("--gas-admins-key", admin), ("--pools-gas-admin", &typo)], "pools.*.gas_admin: "),
        (&[("--evm-maximum-gas-price", "much")], "evm.maximum_gas_price: "),
        (&[("--evm-maximum-gas-price", "0")], "evm.maximum_gas_price: it must be more than 0 gwei"),
        (&[("--pools-gas-admin", &twice)], " twice"),
        (&[("--pools-maximum-gas-price", &other)], "is not configured"),
        (&[("--pools-maximum-payment", &other)], "pools.*.maximum_payment: the pool 0x"),
        (&[("--pools-maximum-payments-per-day", "0x12=5")], "pools.*.maximum_payments_per_day: "),
        (&[("--pools-beneficiaries", "0x12")], "pools.*.beneficiaries: "),
        (&[("--evm-maximum-gas-price", "1e3")], "evm.maximum_gas_price: "),
        (&[("--pools-maximum-gas-price", "0x12=5")], "pools.*.maximum_gas_price: "),
        (
            &[("--gas-admins-key", "a=env:NO_SUCH_KEY"), ("--pools-gas-admin", &pool)],
            "the key in the variable NO_SUCH_KEY, of the gas admin a, cannot be used: ",
        ),
        (&[("--gas-admins-key", &file), ("--pools-gas-admin", &pool)], "bad.key cannot be used: "),
        (
            &[("--gas-admins-key", &missing), ("--pools-gas-admin", &pool)],
            "missing.key cannot be used: ",
        ),
    ];
    for (flags, expected) in cases {
        let output = run(harness.command(&[*flags, &[("--log", "error")]].concat()));
        let message = output.error_message();
        assert!(message.contains(expected), "{flags:?}: {message}");
        assert!(!message.contains("not a key at all"), "{message}");
    }
    assert!(!harness.path().join("withdrawals.db").exists());
}

#[test]
fn nothing_is_sent_to_a_chain_with_another_id() {
    let harness = WithdrawalHarness::new(1);
    let output = run(harness.command(&[("--evm-chain-id", "1"), ("--log", "off")]));
    assert_eq!(output.exit_code, Some(78), "{output:?}");
    let message = output.error_message();
    for part in ["chain 31337", "(evm, chain 1)", "evm.chain_id"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(harness.proxy.calls("eth_sendRawTransaction"), 0);
    assert_eq!(harness.nonce(0), 0);
}

#[test]
fn keys_are_not_printed_logged_or_stored() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve_with(&[("--log", "trace")]);
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_until_withdrawn(&[id]);
    let printed = format!("{}{}", server.process.stdout(), server.process.stderr());
    let key = harness.anvil.accounts()[0].secret_key.trim_start_matches("0x").to_owned();
    let address = &harness.anvil.accounts()[0].address;
    assert!(printed.contains("signed") && printed.to_lowercase().contains(address), "{printed}");
    assert!(!printed.to_lowercase().contains(&key), "the key was printed");
    server.process.signal("TERM");
    server.process.wait();
    let raw: Vec<u8> =
        (0..32).map(|i| u8::from_str_radix(&key[2 * i..2 * i + 2], 16).unwrap()).collect();
    let database = fs::read(harness.path().join("withdrawals.db")).unwrap();
    assert!(!database.windows(32).any(|window| window == raw), "the key is in the database");
}

#[test]
fn configuration_hides_the_api_key_of_the_oracle() {
    let output = run({
        let mut command = GRID_BATCH.command(["config"]);
        command.env("GRID_BATCH_EVM_ORACLE_URL", "https://gas.test/api?apikey=hidden&module=gas");
        command
    });
    assert!(output.stdout.contains("oracle_url = \"https://gas.test/api?apikey=***&module=gas\""));
    assert!(!output.stdout.contains("hidden"));
}
