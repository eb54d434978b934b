use std::time::Duration;

use grid_batch_settings::settings;

use super::HOUR;

settings! {
    /// How batches are submitted.
    #[derive(Debug, Clone)]
    pub struct SubmitConfig in "submit." {
        /// Maximum number of batches under submission.
        ///
        /// Raise it if the ledger can take more requests at once; each is a file descriptor. At most half are at one node
        /// of services.*.node, so that a slow node does not delay the services of others.
        pub concurrency: u32 = number("100").between(1, 10_000),
        /// Maximum number of batches that are under way: taken from the database and not ended. The server allows fewer
        /// after the ledger said that it is busy, and more again while batches are committed. At most two fifths are of
        /// one service (sawtooth).
        ///
        /// Keep it below the number of batches that a node keeps in its queue, which is 300 on an idle sawtooth node.
        /// With several instances the sum counts. Lower it if other clients send to the same nodes.
        pub in_flight: usize = number("250").equal().between(1, 10_000),
    }
}

settings! {
    /// How the ledger is polled.
    #[derive(Debug, Clone)]
    pub struct PollConfig in "poll." {
        /// Longest time until an accepted batch is polled for the first time, and how often the database is read for
        /// batches that another instance or an earlier run has left; raise it to poll a slow ledger less.
        ///
        /// Raise it for a ledger that takes seconds or minutes for a batch.
        pub interval: Duration = text("1s").at_most(HOUR),
        /// Maximum number of status requests in a second, without those that events trigger and those that find an
        /// ended batch; with more services under way, each is polled less often. Raise it if the nodes can answer more,
        /// lower it if they are overloaded.
        ///
        /// Set it to what the nodes can answer besides the batches; divide it by the number of instances.
        pub requests_per_second: u32 = number("500").between(1, 1_000_000),
        /// A batch is held for an operator if nothing can be proved about it after this long. Evidence is searched for
        /// when an accepted batch has had no final status for half of it, on Sawtooth for 10s at the latest; a warning
        /// is logged when nothing of a service has ended for all of it although a batch is under way.
        ///
        /// Raise it if the ledger usually takes longer for a batch, if evidence takes longer, or if a proxy answers in
        /// place of the ledger for longer: fewer batches are then held.
        pub hold_after: Duration = text("2m").equal(),
        /// A batch that the ledger has but has not applied is held this long after its submission.
        ///
        /// Raise it if batches may be pending for hours.
        pub give_up_after: Duration = text("1h").equal(),
    }
}

settings! {
    /// When ended batches are removed.
    #[derive(Debug, Clone)]
    pub struct RetentionConfig in "retention." {
        /// How long after its end a batch is removed, such as "30d"; empty: never. If a client sends a
        /// removed batch again, it is stored and sent to the ledger; on Scabbard, one that was committed ends as
        /// committed, unsent. Without it the database grows by about 2 kB for each
        /// small batch.
        ///
        /// Keep batches for longer than any client repeats a request.
        pub after: Option<Duration> = text("").equal().common(),
    }
}

settings! {
    /// Which events are written.
    #[derive(Debug, Clone)]
    pub struct EventsConfig in "events." {
        /// Write an event for each change of a batch, for /v1/events and the history of batches; removed with the
        /// batch.
        ///
        /// Turn it off if nothing reads the events and the database should write less.
        pub enabled: bool = switch("true").equal(),
    }
}

impl PollConfig {
    /// Status requests that may be in flight: enough for nodes that are far away.
    pub const CONNECTIONS: usize = 16;
}
