//! Where batches are stored, where the interface listens, and the log.

use grid_batch_settings::Setting;

pub(super) static SETTINGS: &[Setting] = &[
    Setting::secret(
        "database",
        "sqlite://grid-batch.db",
        "Database URL: sqlite://FILE or postgresql://USER@HOST/DATABASE",
    )
    .when(
        "Use PostgreSQL for several instances; an SQLite file serves one process. Escape @ / ? # \
         and % in a password, such as %40 for @.",
    )
    .equal(),
    Setting::list(
        "listen",
        "127.0.0.1:8080",
        "Addresses of the HTTP interface: an IP address and a port, tls: and such an address for \
         TLS, or unix: and the path of a Unix socket. Addresses other than loopback need \
         access.mode = \"tokens\"",
    )
    .when(
        "Change the port if another program has it. Clients of other machines come through a \
         proxy, or use TLS and tokens.",
    )
    .or_one_text(),
    Setting::text(
        "log",
        "info",
        "Log level: off, error, warn, info, debug or trace; levels by crate are possible too",
    )
    .when(
        "Use warn to log only what needs attention, and debug for one crate, such as \
         \"info,grid_batch_poller=debug\", to find out why a batch waits.",
    ),
    Setting::text(
        "log_format",
        "text",
        "Format of the log: text for people, or json for programs, with one object a line",
    )
    .when("Use json if a program reads the log."),
];
