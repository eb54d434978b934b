//! Settings that cannot be, and secrets that stay secret.

use std::fs;

use crate::{
    program::{Ended, grid_batch},
    world::World,
};

#[test]
fn a_setting_that_cannot_be_is_named_and_no_database_is_made() {
    let world = World::new(1);
    let (admin, pool) = ("a=env:KEY0", format!("{}=a", world.pools[0].address()));
    let typo = pool.replacen("0x", "0xZ", 1);
    let twice = format!("{0}=admin0,{0}=admin0", world.pools[0].address());
    let other = format!("0x{:040x}=5", 7);
    let bad = world.path().join("bad.key");
    fs::write(&bad, "not a key at all").unwrap();
    let file = format!("a={}", bad.display());
    let missing = format!("a={}", world.path().join("missing.key").display());
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("--evm-pools", "")], "evm.pools is not set"),
        (&[("--ledger-urls", "")], "ledger.urls is not set"),
        (&[("--evm-gas-admins", admin), ("--evm-pools", &typo)], "evm.pools: "),
        (&[("--evm-maximum-gas-price", "much")], "evm.maximum_gas_price: "),
        (&[("--evm-maximum-gas-price", "0")], "evm.maximum_gas_price: nothing is below 0 gwei"),
        (&[("--evm-pools", &twice)], "stands there twice"),
        (&[("--evm-pool-maximum-gas-price", &other)], "is not configured"),
        (&[("--evm-maximum-gas-price", "1e3")], "evm.maximum_gas_price: "),
        (&[("--evm-pool-maximum-gas-price", "0x12=5")], "evm.pool_maximum_gas_price: "),
        (
            &[("--evm-gas-admins", "a=env:NO_SUCH_KEY"), ("--evm-pools", &pool)],
            "the key in the variable NO_SUCH_KEY, of the gas admin a, cannot be used: ",
        ),
        (&[("--evm-gas-admins", &file), ("--evm-pools", &pool)], "bad.key cannot be used: "),
        (&[("--evm-gas-admins", &missing), ("--evm-pools", &pool)], "missing.key cannot be used: "),
    ];
    for (flags, expected) in cases {
        let ended = Ended::of(world.command(&[*flags, &[("--log", "error")]].concat()));
        let failure = ended.failure();
        assert!(failure.contains(expected), "{flags:?}: {failure}");
        assert!(!failure.contains("not a key at all"), "{failure}");
    }
    assert!(!world.path().join("withdrawals.db").exists());
}

#[test]
fn another_chain_than_the_one_that_was_meant_gets_nothing() {
    let world = World::new(1);
    let serving = world.serve_with(&[("--evm-chain-id", "1")]);
    let id = serving.schedule(&world.order(0, 1));
    crate::until::until("it says so", || {
        let told = serving.withdrawal(&id);
        told["waits_for"].as_str().is_some_and(|text| text.contains("31337"))
    });
    assert_eq!(world.proxy.calls("eth_sendRawTransaction"), 0);
    assert_eq!(world.nonce(0), 0);
}

#[test]
fn no_key_is_printed_logged_or_stored() {
    let world = World::new(1);
    let serving = world.serve_with(&[("--log", "trace")]);
    let id = serving.schedule(&world.order(0, 1));
    serving.until_withdrawn(&[id]);
    let said = format!("{}{}", serving.program.stdout(), serving.program.stderr());
    let key = world.anvil.accounts()[0].secret_key.trim_start_matches("0x").to_owned();
    let address = &world.anvil.accounts()[0].address;
    assert!(said.contains("signed") && said.to_lowercase().contains(address), "{said}");
    assert!(!said.to_lowercase().contains(&key), "the key is in what it said");
    serving.program.signal("TERM");
    serving.program.ended();
    let raw: Vec<u8> =
        (0..32).map(|i| u8::from_str_radix(&key[2 * i..2 * i + 2], 16).unwrap()).collect();
    let database = fs::read(world.path().join("withdrawals.db")).unwrap();
    assert!(!database.windows(32).any(|window| window == raw), "the key is in the database");
}

#[test]
fn the_configuration_shows_everything_but_the_oracles_key() {
    let ended = Ended::of({
        let mut command = grid_batch(["config"]);
        command.env("GRID_BATCH_EVM_ORACLE_URL", "https://gas.test/api?apikey=hidden&module=gas");
        command
    });
    assert!(ended.stdout.contains("oracle_url = \"https://gas.test/api?apikey=***&module=gas\""));
    assert!(!ended.stdout.contains("hidden"));
}
