use grid_batch_api::ListenAddress;
use grid_batch_settings::{LogFilter, LogFormat, SettingValues, settings};
use grid_batch_store::DatabaseUrl;

settings! {
    /// The settings outside of sections.
    #[derive(Debug, Clone)]
    pub struct GeneralConfig in "" {
        /// Database URL: sqlite://FILE or postgresql://USER@HOST/DATABASE.
        ///
        /// Use PostgreSQL for several instances; an SQLite file serves one process. Escape @ / ? # and % in a password,
        /// such as %40 for @.
        pub database: DatabaseUrl = secret("sqlite://grid-batch.db").equal().common() => SettingValues::get_parsed,
        /// Addresses of the HTTP interface: an IP address and a port, tls: and such an address for TLS, or unix: and
        /// the path of a Unix socket. Addresses other than loopback need access.mode = "tokens".
        ///
        /// Change the port if another program has it. Clients of other machines come through a proxy, or use TLS and
        /// tokens.
        pub listen: Vec<ListenAddress> = list("127.0.0.1:8080").or_one_text().common() => SettingValues::get_list,
        /// Log level: off, error, warn, info, debug or trace; levels by crate are possible too.
        ///
        /// Use warn to log only what needs attention, and debug for one crate, such as "info,grid_batch_poller=debug",
        /// to find out why a batch waits.
        pub log: LogFilter = text("info").common(),
        /// Format of the log: text for people, or json for programs, with one object a line.
        ///
        /// Use json if a program reads the log.
        pub log_format: LogFormat = text("text"),
    }
}
