//! The database, and how services are divided among instances.

use grid_batch_settings::Setting;

pub(super) static SETTINGS: &[Setting] = &[
    Setting::number("store.connections", "8", "Maximum number of database connections")
        .when(
            "Raise it if the log says that no connection was free, and keep the sum over all \
         instances below max_connections of PostgreSQL.",
        )
        .between(1, 1_000),
    Setting::text(
        "store.start_timeout",
        "0s",
        "How long a server that starts waits for a database that cannot be reached; 0s ends it \
         at once",
    )
    .when(
        "Set it, such as to 60s, where the server and the database are started at the same time \
         and a supervisor does not start the server again.",
    ),
    Setting::text(
        "claims.name",
        "",
        "Name of this instance, unique and constant; after a restart it takes its services back \
         without waiting for their full expiry",
    )
    .when(
        "Set it to a name of the machine, or of the position in a group of machines. Two running \
         instances cannot have one name.",
    ),
    Setting::text(
        "claims.idle_expiry",
        "30s",
        "An instance that has not renewed its claims for this long loses services without a \
         batch under submission",
    )
    .when(
        "Set it above short outages of the database or the network. A shorter one takes over \
         sooner from an instance that failed.",
    )
    .equal(),
    Setting::text(
        "claims.full_expiry",
        "",
        "An instance that has not renewed its claims for this long loses all its services",
    )
    .when(
        "Without it, it is longer than claims.idle_expiry by 12.5 times ledger.request_timeout; the \
         least is 10 times. For a lease with one expiry, set both to one time, longer than 10 \
         times ledger.request_timeout: simpler, but services without a batch under submission are \
         taken over later.",
    )
    .equal(),
    Setting::switch(
        "claims.share",
        "false",
        "Claim no more than an equal share of the services, and release what exceeds it",
    )
    .when("Turn it on to have all instances work; without it the others stand by.")
    .equal(),
];
