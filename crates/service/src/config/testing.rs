use std::{num::NonZero, time::Duration};

use grid_batch_settings::settings;

use super::HOUR;

settings! {
    /// What only tests set, so that they need not wait for as long as a real ledger takes. Empty: it follows from another setting.
    #[derive(Debug, Clone)]
    pub struct TestingConfig in "testing." {
        /// How often the log counts batches.
        pub log_counts: Duration = text("1m"),
        /// The timeout for connecting to a node.
        pub connect_timeout: Option<Duration> = text(""),
        /// After this time an event socket that receives nothing counts as broken.
        pub silence_timeout: Duration = text("45s"),
        /// The first pause before a broken event socket is opened again.
        pub reconnect_first: Duration = text("250ms"),
        /// The longest of these pauses.
        pub reconnect_longest: Duration = text("30s"),
        /// How long a batch waits for a transaction that it depends on and that no batch has.
        pub dependency_limit: Duration = text("10m"),
        /// The longest wait for a free connection and for a lock.
        pub lock_timeout: Duration = text("30s"),
        /// The most services that one signer has opened and in which no batch has ended yet.
        pub new_services_per_signer: Option<NonZero<u64>> = number(""),
        /// The most services in which no batch has ended yet.
        pub new_services: Option<NonZero<u64>> = number(""),
        /// How often services are read for ready ones that the queue was not woken for.
        pub queue_poll_interval: Duration = text("1s").at_most(HOUR),
        /// The delay after the first attempt that certainly failed.
        pub first_delay: Duration = text("250ms"),
        /// The longest such delay.
        pub longest_delay: Duration = text("30s").at_most(HOUR),
        /// The most batches of one service that may be under way.
        pub in_flight_per_service: Option<NonZero<u64>> = number("").between(1, 1_000),
        /// The most bytes of batches whose submissions have not ended.
        pub memory_limit: usize = number("67108864").between(1, u64::MAX),
        /// The timeout for sending a batch once.
        pub sending_limit: Option<Duration> = text(""),
        /// The timeout for a submission.
        pub total_limit: Option<Duration> = text(""),
        /// How long a shutdown waits for submissions under way.
        pub drain_limit: Option<Duration> = text(""),
        /// The longest delay that the ledger can ask for.
        pub retry_after_limit: Duration = text("5m"),
        /// A batch is held when the ledger has refused it this often.
        pub refusals_before_hold: u32 = number("40").between(1, 1_000_000),
        /// The longest interval between two polls of a batch.
        pub longest_interval: Option<Duration> = text(""),
        /// The shortest interval between two polls of a service that events trigger.
        pub trigger_gap: Duration = text("5ms").at_most(HOUR),
        /// How long an accepted batch may have no final status before evidence is searched for.
        pub quiet_after: Option<Duration> = text(""),
        /// How long a batch has been in its state before evidence of absence is accepted.
        pub accept_absence_after: Option<Duration> = text(""),
        /// How long nothing of a service may end while a batch is under way before a warning.
        pub warn_after: Option<Duration> = text(""),
        /// How many attempts a batch has before it is held.
        pub max_attempts: u32 = number("10").between(1, 1_000_000),
        /// How often ended batches are looked for.
        pub retention_interval: Duration = text("1h"),
        /// The longest time of a request to a webhook.
        pub webhooks_timeout: Duration = text("15s").at_most(HOUR),
    }
}
