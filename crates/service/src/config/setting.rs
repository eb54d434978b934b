//! All settings: their names, defaults and help texts.
//!
//! The environment variable and the flag follow from the name: `poll.interval` is
//! `GRID_BATCH_POLL_INTERVAL` and `--poll-interval`.

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// The name: a section of the file, a dot, and the key; or only a key.
    pub name: &'static str,
    /// How the value is written in the file.
    pub form: Form,
    /// The default, in the syntax of an environment variable.
    pub default: &'static str,
    /// What the setting does.
    pub help: &'static str,
}

/// How a value is written in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A text in quotes.
    Text,
    /// A text in quotes that may contain a password.
    Secret,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// A list of texts in brackets.
    List,
}

impl Setting {
    /// The name of the environment variable.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.replace('.', "_").to_uppercase())
    }

    /// The flag, without its dashes.
    pub fn flag(&self) -> String {
        self.name.replace(['.', '_'], "-")
    }

    /// Whether a value may hold a secret, such as a password in a URL.
    pub(super) fn may_hold_secret(&self) -> bool {
        // The URL of a remote signer may have a password.
        let has_remote_signers = self.name == "evm.gas_admins";
        let is_in_file = self.file_setting().is_some() && !WITHOUT_SECRETS.contains(&self.name);
        self.form == Form::Secret || is_in_file || has_remote_signers
    }

    /// The setting that names a file with the value of this one, if it has such a setting.
    pub fn file_setting(&self) -> Option<&'static Self> {
        Self::named(&format!("{}{FILE_SUFFIX}", self.name))
    }

    /// The setting whose value is in the file that this one names.
    pub(super) fn value_setting(&self) -> Option<&'static Self> {
        self.name.strip_suffix(FILE_SUFFIX).and_then(Self::named)
    }

    /// The setting with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }
}

/// Settings that have a file because their lists are long.
const WITHOUT_SECRETS: [&str; 1] = ["evm.beneficiaries"];

/// Ends the name of a setting that names a file with the value of another one.
const FILE_SUFFIX: &str = "_file";

/// The prefix of all our environment variables.
pub(crate) const PREFIX: &str = "GRID_BATCH_";

const fn text(name: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { name, form: Form::Text, default, help }
}

const fn secret(name: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { name, form: Form::Secret, default, help }
}

const fn number(name: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { name, form: Form::Number, default, help }
}

const fn switch(name: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { name, form: Form::Bool, default, help }
}

const fn list(name: &'static str, help: &'static str) -> Setting {
    Setting { name, form: Form::List, default: "", help }
}

/// All settings, in the order in which they are printed.
pub static SETTINGS: &[Setting] = &[
    secret(
        "database",
        "sqlite://grid-batch.db",
        "Database URL: sqlite://FILE or postgresql://USER@HOST/DATABASE",
    ),
    text(
        "database_file",
        "",
        "File with the database URL, in place of database: for a URL with a password",
    ),
    Setting {
        name: "listen",
        form: Form::List,
        default: "127.0.0.1:8080",
        help: "Addresses of the HTTP interface: an IP address and a port, tls: and such an address for TLS, or \
               unix: and the path of a Unix socket. Addresses other than loopback need \
               access.mode = \"tokens\"",
    },
    text(
        "log",
        "info",
        "Log level: off, error, warn, info, debug or trace; levels by crate are possible too",
    ),
    text(
        "log_format",
        "text",
        "Format of the log: text for people, or json for programs, with one object a line",
    ),
    number(
        "log_repeats",
        "10",
        "How many lines with the same message are logged in 10 s; the others are summed up in one line. \
         0 logs all",
    ),
    text(
        "log_counts",
        "1m",
        "How often the log says how many batches were accepted, committed, found invalid and held, if \
         any were",
    ),
    text("ledger.kind", "", "Kind of ledger: sawtooth, scabbard or evm"),
    text(
        "ledger.name",
        "",
        "Name of the ledger; a database keeps that of its first server and refuses servers with \
         another, so that two ledgers are not confused. scabbard requires it",
    ),
    list(
        "ledger.urls",
        "URLs of the ledger's nodes, each of one node; for scabbard the node of all services that are \
         not in ledger.services",
    ),
    text(
        "ledger.urls_file",
        "",
        "File with the URLs of the nodes, one in a line, in place of ledger.urls: for URLs with passwords",
    ),
    list("ledger.services", "Services on nodes of their own, each as SERVICE=URL (scabbard)"),
    text(
        "ledger.services_file",
        "",
        "File with services on nodes of their own, one in a line, in place of ledger.services: for URLs \
         with passwords (scabbard)",
    ),
    list(
        "ledger.peers",
        "Other nodes of a service's circuit, each as SERVICE=ID@URL with the service's id at that \
         node; they are asked about batches but get none. With all of them, the failure of a node \
         rarely needs an operator; list all nodes of a circuit or none (scabbard)",
    ),
    text(
        "ledger.peers_file",
        "",
        "File with other nodes of circuits, one in a line, in place of ledger.peers: for URLs with \
         passwords (scabbard)",
    ),
    text(
        "ledger.key_file",
        "",
        "File with the secret key that authenticates the server to the ledger (scabbard)",
    ),
    text("ledger.connect_timeout", "5s", "Timeout for connecting to a node"),
    text("ledger.request_timeout", "12s", "Timeout for a request to a node, connecting included"),
    switch("ledger.events", "true", "Subscribe to the ledger's events"),
    number("ledger.event_sockets", "100", "Maximum number of open event sockets"),
    text(
        "ledger.silence_timeout",
        "45s",
        "An event socket that receives nothing for this long is broken and is opened again",
    ),
    text(
        "ledger.reconnect_first",
        "250ms",
        "Pause before a broken event socket is opened again for the first time",
    ),
    text(
        "ledger.reconnect_longest",
        "30s",
        "Longest pause before a broken event socket is opened again",
    ),
    text(
        "ledger.coordinator_timeout",
        "30s",
        "After this time the coordinator of a circuit gives a batch up that not all nodes have voted on; a \
         batch does not count as lost before that (scabbard)",
    ),
    list(
        "ledger.known_history",
        "Services whose clients submit each batch only through this server, or never again after it was \
         committed, as patterns in which * stands for any characters. Their batches are sent without a proof \
         that they are new (scabbard)",
    ),
    switch(
        "ledger.refuse_unknown_history",
        "false",
        "Refuse a batch when it is handed in, instead of holding it, if it is not known which batches its \
         service has committed and the request does not say that the batch is new (scabbard)",
    ),
    text(
        "ledger.late_arrival_limit",
        "330s",
        "How long a request that was not answered may still arrive at the ledger. A Scabbard batch is not sent \
         again before that, nor when it was accepted and nothing explains why it is not applied; a batch that \
         was sent again is not invalid before that",
    ),
    text(
        "ledger.strategy",
        "",
        "Strategy of all services that are not in ledger.strategies. serial: one batch of a service at a \
         time. parallel: several, as long as no two conflict by what their transactions declare to read and \
         write. pipeline: several, in order, where the ledger keeps it (ledger.keeps_order). Empty: parallel \
         for sawtooth, serial for other ledgers, which take no other",
    ),
    list("ledger.strategies", "Strategies of single services, each as SERVICE=STRATEGY"),
    text(
        "ledger.after_invalid",
        "continue",
        "What happens after an invalid batch of a service. continue: the batches behind it are submitted. \
         halt: those that follow it (serial, pipeline), or conflict with it or depend on it (parallel), wait \
         until an operator lets them go on or ends them (sawtooth, scabbard)",
    ),
    list(
        "ledger.after_invalid_of",
        "What happens after an invalid batch, for single services, each as SERVICE=continue or SERVICE=halt",
    ),
    switch(
        "ledger.keeps_order",
        "false",
        "The ledger applies batches in the order in which they were sent to it, and loses only the last ones \
         when a node restarts; needed for the strategy pipeline (sawtooth)",
    ),
    text(
        "ledger.dependency_limit",
        "10m",
        "How long a batch waits for a transaction that it depends on and that no batch has, before it is \
         held (sawtooth)",
    ),
    number("evm.chain_id", "1", "Id of the chain; the nodes must report the same"),
    list(
        "evm.gas_admins",
        "Accounts that pay for gas, each as NAME=FILE or NAME=env:VARIABLE of its secret key, \
         NAME=keystore:FILE, or NAME=remote:ADDRESS@URL of a signer with the interface of Web3Signer",
    ),
    list(
        "evm.keystore_passwords",
        "Passwords of the gas admins with a keystore, each as NAME=FILE or NAME=env:VARIABLE",
    ),
    text("evm.signer_timeout", "5s", "Timeout for a request to a remote signer"),
    list("evm.pools", "Pools, each as ADDRESS=NAME, the name of its gas admin"),
    text(
        "evm.maximum_gas_price",
        "200",
        "Withdrawals are parked while the gas price, in gwei, is at or above this (also MAXIMUM_GAS_PRICE)",
    ),
    list(
        "evm.pool_maximum_gas_price",
        "Other maximum gas prices for single pools, each as ADDRESS=GWEI",
    ),
    list(
        "evm.maximum_payment",
        "Largest amount of a withdrawal from single pools, each as ADDRESS=AMOUNT; larger ones are refused \
         with 403",
    ),
    list(
        "evm.maximum_payments_per_day",
        "Largest sum of the amounts scheduled from single pools in 24 hours, each as ADDRESS=AMOUNT; what \
         exceeds it is refused with 429. Withdrawals that have failed do not count",
    ),
    list(
        "evm.beneficiaries",
        "Beneficiaries that may be paid, each as ADDRESS for all pools or POOL=ADDRESS for one; others are \
         refused with 403. A pool for which none is listed may pay any",
    ),
    text(
        "evm.beneficiaries_file",
        "",
        "File with the beneficiaries, one in a line, in place of evm.beneficiaries: for long lists",
    ),
    number(
        "evm.low_balance",
        "20",
        "The log and /health warn when the balance of a gas admin pays for fewer withdrawals than this, \
         at the maximum gas price; 0 for no warning",
    ),
    text(
        "evm.balance_interval",
        "30s",
        "How often the gas price and the balances of gas admins and pools are read",
    ),
    text(
        "evm.maximum_tip",
        "50",
        "Highest tip that is offered to block producers, in gwei, on chains with a base fee",
    ),
    secret(
        "evm.oracle_url",
        "",
        "URL of a gas price oracle, used if the node reports no price; it may contain a key",
    ),
    text(
        "evm.oracle_url_file",
        "",
        "File with the URL of the gas price oracle, in place of evm.oracle_url: for a URL with a key",
    ),
    text(
        "evm.oracle_field",
        "/result/FastGasPrice",
        "JSON pointer to the gas price, in gwei, in the oracle's response",
    ),
    switch(
        "evm.oracle_first",
        "false",
        "Ask the gas price oracle first, and the node only if the oracle fails",
    ),
    text("evm.gate_interval", "5s", "How often parked withdrawals are checked"),
    number("evm.confirmations", "3", "Confirmations after which a withdrawal is final"),
    number(
        "evm.in_flight",
        "16",
        "How many transactions of a gas admin may be sent and not mined; 1: each withdrawal is sent after the \
         one before has ended",
    ),
    text(
        "evm.resend_after",
        "30s",
        "A transaction that is not mined for this long is sent again, with a higher gas price if \
         the maximum allows it; a refusal of a pool that no later block confirms counts after this time",
    ),
    number(
        "evm.longest_gap",
        "64",
        "How many nonces of a gas admin may be missing at the node below the next one; withdrawals are \
         parked while more are",
    ),
    number(
        "evm.agreeing_nodes",
        "0",
        "How many nodes that are up to date must say that a pool refuses a withdrawal before it fails; 0: \
         more than half of ledger.urls",
    ),
    text(
        "evm.head_age_limit",
        "",
        "A node whose latest block is older is not up to date: no withdrawal fails because of what it says; \
         empty: blocks may have any age",
    ),
    number("store.connections", "8", "Maximum number of database connections"),
    text(
        "store.lock_timeout",
        "30s",
        "Timeout for a database connection from the pool and for a lock in the database",
    ),
    text(
        "store.start_timeout",
        "0s",
        "How long a server that starts waits for a database that cannot be reached; 0s ends it at once",
    ),
    text(
        "claims.name",
        "",
        "Name of this instance, unique and constant; after a restart it takes its services back \
         without waiting for their full expiry",
    ),
    text(
        "claims.idle_expiry",
        "30s",
        "An instance that has not renewed its claims for this long loses services without a batch \
         under submission",
    ),
    text(
        "claims.full_expiry",
        "3m",
        "An instance that has not renewed its claims for this long loses all its services",
    ),
    switch(
        "claims.share",
        "false",
        "Claim no more than an equal share of the services, and release what exceeds it",
    ),
    list(
        "http.allowed_hosts",
        "Host names in the URLs of clients, without a port, besides localhost, loopback addresses and the \
         address of listen; requests to other hosts are refused, because a web page could have made its \
         own name lead here",
    ),
    list(
        "http.allowed_origins",
        "Origins of web pages that may use the server, each as https://HOST or https://HOST:PORT; requests \
         of pages of other sites are refused",
    ),
    switch(
        "http.pass_through",
        "true",
        "Have a node answer the requests of the ledger's own clients that do not concern batches stored here, \
         such as those for its state, so that clients need one URL",
    ),
    text(
        "http.tls_certificate",
        "",
        "File with the certificate of the addresses with TLS, and those of the authorities between it and the \
         root, in PEM format. It is read again when it changes",
    ),
    text("http.tls_key", "", "File with the key of http.tls_certificate, in PEM format"),
    text("http.socket_mode", "0600", "Permissions of Unix sockets, in octal digits"),
    list(
        "http.trusted_proxies",
        "Proxies whose headers about their clients count, as IP addresses, networks such as 10.0.0.0/8, or \
         unix for everyone who reaches a Unix socket. The headers of others are ignored",
    ),
    text(
        "http.forwarded_headers",
        "x-forwarded",
        "The headers that trusted proxies set: x-forwarded for X-Forwarded-For, X-Forwarded-Proto and \
         X-Forwarded-Host, or forwarded for Forwarded. The others are ignored",
    ),
    text(
        "access.mode",
        "",
        "What requests must have. none: nothing; everyone who reaches the server may do everything. ledger_keys: \
         those that submit batches or read from a Splinter node a Cylinder token of a key that the node \
         accepts, or of one in access.keys; others nothing. tokens: a token of `grid-batch token create`, or a \
         Cylinder token of a key in access.keys. Empty: ledger_keys on scabbard, none on other ledgers",
    ),
    list(
        "access.keys",
        "What clients that send a Cylinder token may do, each as KEY=SCOPES@SERVICES with a public \
         key of 66 hex digits, scopes (submit, read, operate) separated by +, and a pattern of \
         services",
    ),
    text(
        "access.health",
        "local",
        "Who may read /health, /health/ready and /metrics without a token: token for no one, local for \
         clients on this machine that no proxy has passed on, or everyone. /health/live is open to everyone",
    ),
    switch(
        "access.allow_anonymous",
        "false",
        "Listen at addresses that other machines reach although access.mode is none",
    ),
    text(
        "intake.rate_of_client",
        "",
        "Batches that a token, or an address without one, may submit in a second, and how many at once, such \
         as 100/500; more are refused with 429. Each instance counts for itself. Empty: no limit",
    ),
    text("intake.rate_of_service", "", "The same for each service, from all clients together"),
    number("intake.body_limit", "10485760", "Maximum size of a request body in bytes"),
    number(
        "intake.connections",
        "1024",
        "Maximum number of open HTTP connections; fewer if the limit of file descriptors (`ulimit -n`) \
         leaves no more. When so many are open, idle ones are closed for new ones",
    ),
    number(
        "intake.requests_of_address",
        "512",
        "Maximum number of HTTP requests in progress from one address; more are answered 429, so that one \
         client leaves room for others",
    ),
    list(
        "intake.services",
        "Services whose batches are accepted, as patterns in which * stands for any characters, such as \
         abcde-01234::gs*; empty for all. Batches that are stored already are submitted all the same \
         (sawtooth, scabbard)",
    ),
    list(
        "intake.signers",
        "Public keys of the signers whose batches are accepted, as 66 hex digits or as patterns in which * \
         stands for any digits; empty for all. The signer of the batch counts, not those of its \
         transactions (sawtooth, scabbard)",
    ),
    number(
        "intake.open_batches",
        "100000",
        "Maximum number of open batches of a service, or of open withdrawals of a gas admin; more are \
         refused with 429 until some have ended",
    ),
    text(
        "intake.open_batches_of_client",
        "",
        "Maximum number of open batches that a token, or a key of access.keys, has submitted while this was \
         set; more are refused with 429 until some have ended. Empty: no limit",
    ),
    number(
        "intake.new_services_per_signer",
        "1000",
        "Maximum number of services that a signer has opened and in which no batch has ended yet; batches \
         for further new services are refused with 429 (sawtooth, scabbard)",
    ),
    number(
        "intake.new_services",
        "10000",
        "Maximum number of services in which no batch has ended yet, of all signers together; batches for \
         further new services are refused with 429 (sawtooth, scabbard)",
    ),
    number("queue.round_size", "100", "Maximum number of batches that are taken in one round"),
    text(
        "queue.poll_interval",
        "1s",
        "How often all claimed services are checked for batches to submit; wake-ups are usually \
         faster",
    ),
    text(
        "queue.delay",
        "250ms",
        "How long a batch is delayed after an attempt that the ledger certainly did not accept; each \
         further one in a row doubles the delay, up to queue.longest_delay",
    ),
    text(
        "queue.longest_delay",
        "30s",
        "Longest delay of a batch that the ledger does not accept, except one that the ledger asks for; \
         also about how long services take to continue after an outage",
    ),
    number("submit.concurrency", "100", "Maximum number of batches under submission"),
    number(
        "submit.in_flight",
        "250",
        "Maximum number of batches that are under way: taken from the database and not ended. The server \
         allows fewer after the ledger said that it is busy, and more again while batches are committed \
         (sawtooth)",
    ),
    number(
        "submit.in_flight_per_service",
        "100",
        "Maximum number of batches of one service that are under way, with the strategies parallel and \
         pipeline",
    ),
    number(
        "submit.node_concurrency",
        "50",
        "Maximum number of batches under submission at one node of ledger.services, and never more than \
         are left for other nodes, so that a slow node does not delay the services of others",
    ),
    number(
        "submit.memory_limit",
        "67108864",
        "Maximum size, in bytes, of the batches that were taken from the database and whose submissions \
         have not ended; a larger batch is submitted when no other large one is. Up to four times as much \
         memory is needed for a moment",
    ),
    text("submit.sending_limit", "15s", "Timeout for sending a batch once"),
    text(
        "submit.total_limit",
        "60s",
        "Timeout for a submission, from taking a batch from the database to the answer of the last node \
         that is tried; a batch that cannot be sent within it goes back to the queue",
    ),
    text("submit.drain_limit", "20s", "How long a shutdown waits for submissions under way"),
    number(
        "submit.not_sent_attempts",
        "3",
        "How many nodes are tried, one after the other, with a batch that does not reach them, before it \
         is delayed",
    ),
    text(
        "submit.retry_after_limit",
        "5m",
        "Longest delay that a ledger can ask for with Retry-After; a longer one is cut to this, and \
         `grid-batch retry` ends it",
    ),
    number(
        "submit.refusals_before_hold",
        "40",
        "A batch that the ledger refuses this often, without another answer in between, is held for an \
         operator: a wrong key or service stays wrong. With the default delays that is after about a \
         quarter of an hour",
    ),
    text(
        "poll.interval",
        "1s",
        "Longest time until an accepted batch is polled for the first time, and how often the database \
         is read for batches that another instance or an earlier run has left; raise it to poll a slow \
         ledger less",
    ),
    text(
        "poll.longest_interval",
        "60s",
        "How often a batch is polled whose status has not changed for a long time",
    ),
    text(
        "poll.trigger_gap",
        "5ms",
        "Shortest time between two polls of a service that events trigger",
    ),
    number(
        "poll.requests_per_second",
        "500",
        "Maximum number of status requests in a second, without those that events trigger and those that \
         find an ended batch; with more \
         services under way, each is polled less often. Raise it if the nodes can answer more, lower \
         it if they are overloaded",
    ),
    number("poll.connections", "16", "Maximum number of status requests in flight"),
    text(
        "poll.quiet_after",
        "60s",
        "Evidence is searched for if an accepted batch has no final status after this long; on \
         Sawtooth after 10s at the latest",
    ),
    text(
        "poll.accept_absence_after",
        "30s",
        "Evidence of absence is accepted after a batch has been in its state for this long",
    ),
    text(
        "poll.hold_after",
        "2m",
        "A batch is held for an operator if nothing can be proved about it after this long",
    ),
    text(
        "poll.give_up_after",
        "1h",
        "A batch that the ledger has but has not applied is held this long after its submission",
    ),
    text(
        "poll.warn_after",
        "2m",
        "A warning is logged if nothing of a service has ended for this long although a batch is under \
         way; sooner, down to a quarter of it, if the ledger is usually fast; and if the ledger has not \
         accepted the batch of a service for this long",
    ),
    number(
        "poll.max_attempts",
        "10",
        "Maximum number of attempts for a batch that the ledger loses, before it is held",
    ),
    list(
        "poll.resubmit_inconclusive",
        "Services whose batches are submitted again instead of held; they may be applied twice",
    ),
    text(
        "retention.after",
        "",
        "How long after its end a batch is removed, such as \"30d\"; empty: never. A removed batch that a \
         client sends again is a new one; on Scabbard it ends as committed. Without it the database grows by about 2 kB \
         for each small batch",
    ),
    text(
        "retention.interval",
        "1h",
        "How often ended batches are looked for, by one of the instances",
    ),
    switch(
        "events.enabled",
        "true",
        "Write an event for each change of a batch, for /v1/events and the history of batches; removed with \
         the batch",
    ),
    list(
        "webhooks.allow_private",
        "Addresses and networks, such as 10.0.0.0/8, to which events may be sent although they are private",
    ),
    text(
        "webhooks.timeout",
        "15s",
        "Timeout for a request to a receiver of events, connecting included",
    ),
    number(
        "webhooks.attempts",
        "10",
        "Number of failed attempts after which an event is put in the list of failed messages and \
         the next one follows",
    ),
    number(
        "metrics.services",
        "100",
        "How many services, those with most open batches, have a label of their own in /metrics; the others are \
         summed as \"other\"",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn variables_and_flags_are_unique() {
        let variables: BTreeSet<String> = SETTINGS.iter().map(Setting::variable).collect();
        let flags: BTreeSet<String> = SETTINGS.iter().map(Setting::flag).collect();
        assert_eq!((variables.len(), flags.len()), (SETTINGS.len(), SETTINGS.len()));
    }

    #[test]
    fn variable_and_flag_follow_from_the_name() {
        let setting = Setting::named("poll.trigger_gap").unwrap();
        assert_eq!(setting.variable(), "GRID_BATCH_POLL_TRIGGER_GAP");
        assert_eq!(setting.flag(), "poll-trigger-gap");
    }
}
