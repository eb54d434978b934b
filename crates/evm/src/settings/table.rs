use std::time::Duration;

use grid_batch_settings::Setting;

/// The maximum of many settings. With a longer value, set by mistake, the server would stand still for that long.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// The settings that only this adapter reads.
pub static SETTINGS: &[Setting] = &[
    Setting::number("evm.chain_id", "1", "Id of the chain; the nodes must report the same")
        .when("Set it to the chain's; 1 is Ethereum's main network.")
        .equal(),
    Setting::text(
        "evm.maximum_gas_price",
        "200",
        "Withdrawals are parked while the gas price, in gwei, is at or above this (also \
         MAXIMUM_GAS_PRICE). A tip for block producers is at most a quarter of it, or 50 gwei if \
         that is more",
    )
    .when(
        "Raise it if withdrawals must not wait when gas is expensive; lower it to wait for \
         cheaper gas.",
    )
    .equal()
    .alias("MAXIMUM_GAS_PRICE"),
    Setting::secret(
        "evm.oracle_url",
        "",
        "URL of a gas price oracle, used if the node reports no price; it may contain a key. After \
         # stands the JSON pointer to the gas price, in gwei, in the response; without it, it is \
         /result/FastGasPrice",
    )
    .when("Use it if the nodes report no usable gas price."),
    Setting::switch(
        "evm.oracle_first",
        "false",
        "Ask the gas price oracle first, and the node only if the oracle fails",
    )
    .when("Turn it on if the oracle is better than the node's estimate."),
    Setting::text(
        "evm.gate_interval",
        "5s",
        "How often parked withdrawals are checked; balances of gas admins and pools, and the gas \
         price, are read six times as rarely",
    )
    .when(
        "Raise it if the provider of the node or of the oracle limits requests: reading the \
         balances takes a request for each gas admin and pool, and two for the price.",
    )
    .at_most(HOUR),
    Setting::number("evm.confirmations", "3", "Confirmations after which a withdrawal is final")
        .when(
            "Raise it on chains that reorganize more blocks; a withdrawal is reported as final \
         later.",
        )
        .equal()
        .between(1, 100_000),
    Setting::number(
        "evm.in_flight",
        "16",
        "How many transactions of a gas admin may be sent and not mined; 1: each withdrawal is \
         sent after the one before has ended",
    )
    .when(
        "Lower it if a withdrawal that the pool refuses must never cost gas, or if nodes keep \
         few pending transactions of an account (geth keeps 16); raise it if withdrawals wait \
         although blocks have room.",
    )
    .equal()
    .between(1, 64),
    Setting::text(
        "evm.resend_after",
        "30s",
        "A transaction that is not mined for this long is sent again, with a higher gas price if \
         the maximum allows it; a refusal of a pool that no later block confirms counts after \
         this time",
    )
    .when("Set it to a few times the chain's interval between blocks.")
    .equal(),
    Setting::number(
        "evm.longest_gap",
        "64",
        "How many nonces of a gas admin may be missing at the node below the next one; \
         withdrawals are parked while more are",
    )
    .when(
        "Raise it when a withdrawal is parked because of a longer gap and the chain has really \
         lost these transactions.",
    )
    .equal()
    .between(1, 100_000),
    Setting::text(
        "evm.head_age_limit",
        "",
        "A node whose latest block is older is not up to date: no withdrawal fails because of \
         what it says; empty: blocks may have any age",
    )
    .when(
        "Set it to about twenty times the interval between blocks, such as 5m, on a chain with \
         regular blocks. Leave it empty on a chain that adds blocks only for transactions.",
    )
    .equal(),
    Setting::text(
        "gas_admins.*.key",
        "",
        "Secret key of the account that pays for gas: FILE, env:VARIABLE, keystore:FILE, or \
         remote:ADDRESS@URL of a signer with the interface of Web3Signer",
    )
    .when(
        "Use one gas admin for each group of pools; a withdrawal that waits delays the later ones \
         of its gas admin.",
    )
    .equal()
    .with_secrets(),
    Setting::text(
        "gas_admins.*.password",
        "",
        "Password of the gas admin's keystore: FILE or env:VARIABLE",
    )
    .when("Give the file mode 0600 and the server's user as its owner."),
    Setting::text("pools.*.gas_admin", "", "Name of the gas admin of the pool with this address")
        .when("Add a pool before the first withdrawal from it is requested.")
        .equal(),
    Setting::text(
        "pools.*.maximum_gas_price",
        "",
        "Maximum gas price of the pool, if it is not evm.maximum_gas_price",
    )
    .when("Use it for pools whose withdrawals are more or less urgent.")
    .equal(),
    Setting::text(
        "pools.*.maximum_payment",
        "",
        "Largest amount of a withdrawal from the pool; larger ones are refused with 403",
    )
    .when(
        "Set it above the largest amount that is expected, so that a client that makes a mistake \
         or is abused can request no more. It applies to new withdrawals and retries.",
    )
    .equal(),
    Setting::text(
        "pools.*.maximum_payments_per_day",
        "",
        "Largest sum of the amounts scheduled from the pool in 24 hours; what exceeds it is \
         refused with 429. Withdrawals that have failed do not count",
    )
    .when(
        "Set it above what is usually paid in a day. An amount counts for 24 hours, and up to \
         ten minutes longer.",
    )
    .equal(),
    Setting::list(
        "pools.*.beneficiaries",
        "",
        "Beneficiaries that the pool may pay, or all pools with the key *; others are refused \
         with 403. A pool for which none is listed may pay any",
    )
    .when(
        "Use it for pools that pay only known accounts. A withdrawal that is scheduled and not \
         signed yet fails if its beneficiary is removed. An empty file is refused, because it \
         would allow all.",
    )
    .equal(),
    Setting::text("testing.signer_timeout", "", "").for_tests(),
    Setting::text("testing.balance_interval", "", "").for_tests(),
    // `evm.oracle_field` is read as this setting.
    Setting::text("testing.oracle_field", "/result/FastGasPrice", "").for_tests(),
];
