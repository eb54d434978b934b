use std::time::Duration;

/// What a ledger does with batches, as its adapter declares it.
///
/// The server derives its rules from these facts: which strategies are possible, whether it asks before it sends,
/// when absence counts. It never asks for the kind of ledger. A fact that is declared more strongly than the ledger
/// behaves can make the server apply a batch twice or lose one, so a doubtful fact is declared the weaker way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerFacts {
    /// What the ledger does with a batch that it has applied and that arrives again.
    pub second_arrival: SecondArrival,
    /// Whether it can be proved that the ledger does not have a batch.
    pub proves_absence: bool,
    /// For how long a request can be on its way to the ledger after its sender has given up.
    pub late_arrival_limit: Duration,
    /// Whether a node that was restarted reports the batches that it had before.
    pub statuses_survive_restart: bool,
    /// Whether batches of one service are applied in the order in which they were sent.
    pub keeps_order: bool,
    /// Whether the ledger executes a transaction only with access to the addresses that it declares.
    pub enforces_declared_access: bool,
    /// Whether a service is at one node, so that its batches cannot be sent to another one.
    pub one_node_for_service: bool,
    /// Whether batches have a time or a height after which the ledger cannot apply them.
    pub batches_expire: bool,
    /// Whether nodes tell of applied batches by events.
    pub has_events: bool,
    /// Whether the nodes of a service can have different states for good, so that they are compared.
    pub compares_states: bool,
    /// Evidence is looked for when the state of a batch has not changed for this long. `None`: as the settings say.
    pub quiet_after: Option<Duration>,
}

/// What a ledger does with a batch that it has applied and that arrives again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecondArrival {
    /// Nothing: it stays applied once, and its status stays *committed*.
    AppliedOnce,
    /// It applies the batch again.
    AppliedAgain,
    /// It stays applied once, but the ledger may report it as invalid.
    Refused,
}
