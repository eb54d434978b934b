use std::time::Duration;

use grid_batch_settings::{DurationOrZero, settings};

settings! {
    /// How the database is used.
    #[derive(Debug, Clone)]
    pub struct StoreConfig in "store." {
        /// Maximum number of database connections.
        ///
        /// Raise it if the log says that no connection was free, and keep the sum over all instances below
        /// max_connections of PostgreSQL.
        pub connections: u32 = number("8").between(1, 1_000),
        /// How long a server that starts waits for a database that cannot be reached; 0s ends it at once.
        ///
        /// Set it, such as to 60s, where the server and the database are started together and no supervisor starts the
        /// server again.
        pub start_timeout: DurationOrZero = text("0s"),
    }
}

settings! {
    /// How services are divided among instances.
    #[derive(Debug, Clone)]
    pub struct ClaimsConfig in "claims." {
        /// Name of this instance, unique and constant; after a restart it takes its services back without waiting for
        /// their full expiry.
        ///
        /// Set it to a name of the machine, or of the position in a group of machines. Two running instances cannot
        /// have one name.
        pub name: Option<String> = text(""),
        /// An instance that has not renewed its claims for this long loses services without a batch under submission.
        ///
        /// Set it above short outages of the database or the network. A shorter one takes over sooner from an instance
        /// that failed.
        pub idle_expiry: Duration = text("30s").equal(),
        /// An instance that has not renewed its claims for this long loses all its services.
        ///
        /// Without it, it is longer than claims.idle_expiry by 12.5 times ledger.request_timeout; the least is 10
        /// times. For a lease with one expiry, set both to one time, longer than 10 times ledger.request_timeout:
        /// simpler, but services without a batch under submission are taken over later.
        pub full_expiry: Option<Duration> = text("").equal(),
        /// Claim no more than an equal share of the services, and release what exceeds it.
        ///
        /// Turn it on to have all instances work; without it the others stand by.
        pub share: bool = switch("false").equal().common(),
    }
}
