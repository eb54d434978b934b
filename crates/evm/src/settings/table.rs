use std::time::Duration;

use grid_batch_settings::Setting;

/// The longest value of many settings: with a longer one, given by mistake, the server would stand still for as long.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// The settings that only this adapter reads.
pub static SETTINGS: &[Setting] = &[
    Setting::number("evm.chain_id", "1", "Id of the chain; the nodes must report the same")
        .when("Set it to the chain's; 1 is Ethereum's main network.")
        .equal(),
    Setting::list(
        "evm.gas_admins",
        "",
        "Accounts that pay for gas, each as NAME=FILE or NAME=env:VARIABLE of its secret key, \
         NAME=keystore:FILE, or NAME=remote:ADDRESS@URL of a signer with the interface of \
         Web3Signer",
    )
    .when(
        "Use one for each group of pools; a withdrawal that waits delays the later ones of its \
         gas admin.",
    )
    .equal()
    .with_secrets(),
    Setting::list(
        "evm.keystore_passwords",
        "",
        "Passwords of the gas admins with a keystore, each as NAME=FILE or NAME=env:VARIABLE",
    )
    .when("Give the files mode 0600 and the server's user as their owner."),
    Setting::text("evm.signer_timeout", "5s", "Timeout for a request to a remote signer")
        .when(
            "Raise it if the signer's hardware is slow; withdrawals of its gas admin wait for it.",
        )
        .at_most(HOUR),
    Setting::list("evm.pools", "", "Pools, each as ADDRESS=NAME, the name of its gas admin")
        .when("Add a pool before the first withdrawal from it is requested.")
        .equal(),
    Setting::text(
        "evm.maximum_gas_price",
        "200",
        "Withdrawals are parked while the gas price, in gwei, is at or above this (also \
         MAXIMUM_GAS_PRICE)",
    )
    .when(
        "Raise it if withdrawals must not wait when gas is expensive; lower it to wait for \
         cheaper gas.",
    )
    .equal()
    .alias("MAXIMUM_GAS_PRICE"),
    Setting::list(
        "evm.pool_maximum_gas_price",
        "",
        "Other maximum gas prices for single pools, each as ADDRESS=GWEI",
    )
    .when("Use it for pools whose withdrawals are more or less urgent.")
    .equal(),
    Setting::list(
        "evm.maximum_payment",
        "",
        "Largest amount of a withdrawal from single pools, each as ADDRESS=AMOUNT; larger ones \
         are refused with 403",
    )
    .when(
        "Set it above the largest amount that is expected, so that a client that makes a mistake \
         or is abused can request no more. It applies to new withdrawals and retries.",
    )
    .equal(),
    Setting::list(
        "evm.maximum_payments_per_day",
        "",
        "Largest sum of the amounts scheduled from single pools in 24 hours, each as \
         ADDRESS=AMOUNT; what exceeds it is refused with 429. Withdrawals that have failed do \
         not count",
    )
    .when(
        "Set it above what is usually paid in a day. An amount counts for 24 hours, and up to \
         ten minutes longer.",
    )
    .equal(),
    Setting::list(
        "evm.beneficiaries",
        "",
        "Beneficiaries that may be paid, each as ADDRESS for all pools or POOL=ADDRESS for one; \
         others are refused with 403. A pool for which none is listed may pay any",
    )
    .when(
        "Use it for pools that pay only known accounts. A withdrawal that is scheduled and not \
         signed yet fails if its beneficiary is removed.",
    )
    .equal(),
    Setting::text(
        "evm.beneficiaries_file",
        "",
        "File with the beneficiaries, one in a line, in place of evm.beneficiaries: for long \
         lists",
    )
    .when("Use it for long lists. An empty file is refused, because it would allow all.")
    .equal(),
    Setting::number(
        "evm.low_balance",
        "20",
        "The log and /health warn when the balance of a gas admin pays for fewer withdrawals \
         than this, at the maximum gas price; 0 for no warning",
    )
    .when(
        "Raise it if many withdrawals are made in the time that you need to send coins to a gas \
         admin.",
    )
    .between(0, 1_000_000),
    Setting::text(
        "evm.balance_interval",
        "30s",
        "How often the gas price and the balances of gas admins and pools are read",
    )
    .when(
        "Raise it if the provider of the node limits requests: each reading takes a request for \
         each gas admin and pool, and two for the price.",
    )
    .at_most(HOUR),
    Setting::text(
        "evm.maximum_tip",
        "50",
        "Highest tip that is offered to block producers, in gwei, on chains with a base fee",
    )
    .when(
        "Raise it if all transactions of the chain offer more; 50 is far above what is usual on \
         Ethereum's main network, and above the usual 30 of Polygon.",
    )
    .equal(),
    Setting::secret(
        "evm.oracle_url",
        "",
        "URL of a gas price oracle, used if the node reports no price; it may contain a key",
    )
    .when("Use it if the nodes report no usable gas price."),
    Setting::file(
        "evm.oracle_url_file",
        "File with the URL of the gas price oracle, in place of evm.oracle_url: for a URL with a \
         key",
    ),
    Setting::text(
        "evm.oracle_field",
        "/result/FastGasPrice",
        "JSON pointer to the gas price, in gwei, in the oracle's response",
    )
    .when("Change it with the oracle: each has its own response."),
    Setting::switch(
        "evm.oracle_first",
        "false",
        "Ask the gas price oracle first, and the node only if the oracle fails",
    )
    .when("Turn it on if the oracle is better than the node's estimate."),
    Setting::text("evm.gate_interval", "5s", "How often parked withdrawals are checked")
        .when("Raise it if the provider of the node or of the oracle limits requests.")
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
    Setting::number(
        "evm.agreeing_nodes",
        "0",
        "How many nodes that are up to date must say that a pool refuses a withdrawal before it \
         fails; 0: more than half of ledger.urls",
    )
    .when(
        "Lower it to 1 if refused withdrawals must not wait while a node is down; raise it to \
         the number of nodes if none may fail before all nodes have refused it.",
    )
    .equal()
    .between(0, 1_000),
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
];
