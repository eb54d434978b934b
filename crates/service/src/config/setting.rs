//! Every setting there is: its name in the file, its default, and what it is for.
//!
//! From the name follow the environment variable (`poll.interval` is `GRID_BATCH_POLL_INTERVAL`) and
//! the flag (`--poll-interval`).

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name: a section of the file, a dot, and the key; or a key of no section.
    pub name: &'static str,
    /// How it is written in the file.
    pub form: Form,
    /// Its value where nobody says otherwise, as a variable would give it.
    pub default: &'static str,
    /// What it is for.
    pub help: &'static str,
}

/// How a value is written in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// In quotes.
    Text,
    /// In quotes; it may hold a password.
    Secret,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// Texts in brackets.
    List,
}

impl Setting {
    /// The environment variable.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.replace('.', "_").to_uppercase())
    }

    /// The flag, without its dashes.
    pub fn flag(&self) -> String {
        self.name.replace(['.', '_'], "-")
    }

    /// The setting of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }
}

/// How all of our environment variables begin.
pub(crate) const PREFIX: &str = "GRID_BATCH_";

const fn text(name: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { name, form: Form::Text, default, help }
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
    Setting {
        name: "database",
        form: Form::Secret,
        default: "sqlite://grid-batch.db",
        help: "Where batches are stored: sqlite://FILE or postgresql://USER@HOST/DATABASE",
    },
    text(
        "listen",
        "127.0.0.1:8080",
        "Where batches are handed in: an address of this machine alone",
    ),
    text("log", "info", "What is logged: off, error, warn, info, debug, trace, or more by crate"),
    text("ledger.kind", "", "Which ledger: sawtooth, scabbard, or evm"),
    list("ledger.urls", "The addresses of its nodes"),
    list("ledger.services", "Services that are elsewhere, each as SERVICE=URL (scabbard)"),
    text("ledger.key_file", "", "The file of the key that the service is known by (scabbard)"),
    text("ledger.connect_limit", "5s", "The longest that connecting may take"),
    text("ledger.request_limit", "12s", "The longest that a request may take"),
    switch("ledger.events", "true", "Listen to the ledger's events"),
    number("ledger.event_sockets", "100", "How many event sockets are held open at most"),
    text(
        "ledger.socket_silence",
        "45s",
        "An event socket on which nothing comes for so long is broken",
    ),
    text("ledger.reconnect_first", "250ms", "The first wait before it is opened again"),
    text("ledger.reconnect_longest", "30s", "The longest such wait"),
    text(
        "ledger.absent_after",
        "60s",
        "When a batch that no node knows counts as not there (scabbard)",
    ),
    text(
        "ledger.dropped_after",
        "90s",
        "When a batch that stays Valid counts as dropped (scabbard)",
    ),
    number("evm.chain_id", "1", "The id of the chain; its nodes must say the same"),
    list(
        "evm.gas_admins",
        "Accounts that pay for gas, each as NAME=FILE or NAME=env:VARIABLE of its key",
    ),
    list("evm.pools", "The pools, each as ADDRESS=NAME of its gas admin"),
    text(
        "evm.maximum_gas_price",
        "200",
        "In gwei: at this price of gas, and above it, withdrawals wait (also MAXIMUM_GAS_PRICE)",
    ),
    list("evm.pool_maximum_gas_price", "The same for single pools, each as ADDRESS=GWEI"),
    Setting {
        name: "evm.oracle_url",
        form: Form::Secret,
        default: "",
        help: "Where else the price of gas is asked for; it may hold a key",
    },
    text(
        "evm.oracle_field",
        "/result/FastGasPrice",
        "Where in its answer the price stands, in gwei",
    ),
    switch("evm.oracle_first", "false", "Ask it before the node, and the node where it fails"),
    text("evm.gate_interval", "5s", "How often to look whether what is parked can go on"),
    number("evm.confirmations", "3", "How many blocks deep a withdrawal must be to count"),
    text(
        "evm.resend_after",
        "30s",
        "When what is not mined is sent again, better paid where it may be",
    ),
    number("store.connections", "8", "How many connections to the database are used at most"),
    text("store.patience", "30s", "How long to wait for the database"),
    text(
        "claims.name",
        "",
        "The instance's name, to take its own claims back at once; without one it is new at each start",
    ),
    text(
        "claims.expiry_1",
        "30s",
        "An instance that is silent for so long loses services of which nothing is being sent",
    ),
    text(
        "claims.expiry_2",
        "3m",
        "An instance that is silent for so long loses all of its services",
    ),
    switch("claims.share", "false", "Take no more than a fair part of the services"),
    number("intake.body_limit", "10485760", "How many bytes a request may have"),
    number("queue.round", "100", "How many batches are taken from the database at once"),
    text("queue.poll_interval", "1s", "How often to look for batches that nobody told of"),
    text("queue.delay", "15s", "How long a batch waits after the ledger did not take it"),
    number("submit.concurrency", "100", "How many batches are being sent at most"),
    text("submit.sending_limit", "15s", "The longest that sending a batch once may take"),
    text(
        "submit.total_limit",
        "60s",
        "The longest that sending a batch may take, repetitions included",
    ),
    text("submit.drain_limit", "20s", "How long a stop waits for what is being sent"),
    number(
        "submit.busy_attempts",
        "10",
        "How often a batch is sent to a busy ledger before it is delayed",
    ),
    number(
        "submit.not_sent_attempts",
        "3",
        "How often an unreachable ledger is tried before a batch is delayed",
    ),
    text("submit.retry_first", "250ms", "The first wait before a batch is sent again"),
    text("submit.retry_longest", "10s", "The longest such wait"),
    text("poll.interval", "1s", "How often the ledger is asked for a batch, without events"),
    text(
        "poll.interval_with_events",
        "30s",
        "How often the ledger is asked for a batch, while events come",
    ),
    text("poll.longest", "60s", "How often the ledger is asked for a batch that is stuck"),
    text("poll.trigger_gap", "5ms", "The shortest time between two questions that events lead to"),
    number("poll.connections", "16", "How many questions to the ledger are under way at most"),
    text("poll.quiet_after", "60s", "When to look for evidence about a batch that the ledger took"),
    text(
        "poll.believe_absence_after",
        "30s",
        "When evidence that the ledger does not have a batch counts",
    ),
    text(
        "poll.hold_after",
        "2m",
        "When a batch of which nothing can be proved is held for a person",
    ),
    text(
        "poll.give_up_after",
        "1h",
        "When a batch that the ledger does not end is held for a person",
    ),
    number(
        "poll.max_attempts",
        "10",
        "How often a batch that the ledger loses is tried before it is held",
    ),
    list(
        "poll.resubmit_undecided",
        "Services whose batches are sent again instead of held: they may be applied twice",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_settings_share_a_variable_or_a_flag() {
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
