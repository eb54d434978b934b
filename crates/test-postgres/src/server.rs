use std::{
    env, thread,
    time::{Duration, Instant},
};

use diesel::{RunQueryDsl, dsl::sql, select, sql_types::Text};

use crate::{
    account::Account,
    installation::Installation,
    server_url::{ServerUrl, URL_VARIABLE},
    supervisor::Supervisor,
    workplace::Workplace,
};

/// A PostgreSQL server for tests.
///
/// One that was started here is gone, with all its data, once the value is dropped or the process
/// has ended in whatever way.
///
/// Where something is missing, the functions panic and say what it is.
#[derive(Debug)]
pub struct TestServer {
    url: ServerUrl,
    started: Option<Started>,
}

#[derive(Debug)]
struct Started {
    installation: Installation,
    _supervisor: Supervisor,
}

impl TestServer {
    /// Longer than any start takes on the busiest machine.
    const PATIENCE: Duration = Duration::from_secs(60);
    const POLL_INTERVAL: Duration = Duration::from_millis(5);

    const ALWAYS: [&str; 2] = ["-clisten_addresses=", "-cmax_connections=200"];
    const FORGETFUL: [&str; 4] = [
        "-cfsync=off",
        "-cfull_page_writes=off",
        "-csynchronous_commit=off",
        "-cshared_buffers=32MB",
    ];
    const DURABLE: [&str; 3] = ["-cfsync=on", "-cfull_page_writes=on", "-csynchronous_commit=on"];

    /// The server that `GRID_BATCH_TEST_DATABASE_URL` names, else a new one.
    pub fn named_or_new() -> Self {
        match named_url() {
            Some(url) => Self { url: ServerUrl::named(url), started: None },
            None => Self::start(),
        }
    }

    /// A new server, fast because it writes nothing to disk for certain.
    pub fn start() -> Self {
        Self::start_with(&Self::FORGETFUL)
    }

    /// A new server that commits to disk as one in production does: for benchmarks.
    ///
    /// Its data is among the temporary files; if they are kept in memory, set `TMPDIR`.
    pub fn durable() -> Self {
        Self::start_with(&Self::DURABLE)
    }

    /// Whether [`named_or_new`](Self::named_or_new) has anything to work with.
    pub fn is_available() -> bool {
        named_url().is_some() || Installation::find().is_ok()
    }

    /// Its URL, for libpq.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Which PostgreSQL it is and where it comes from, without passwords.
    pub fn description(&self) -> String {
        let origin = match &self.started {
            Some(started) => format!("thrown away afterwards, from {}", started.installation),
            None => format!("named by {URL_VARIABLE}: {}", self.url),
        };
        let version: String = select(sql::<Text>("current_setting('server_version')"))
            .get_result(&mut self.url.connect())
            .unwrap_or_else(|error| panic!("cannot ask {} for its version: {error}", self.url));
        format!("PostgreSQL {version}, {origin}")
    }

    pub(crate) fn location(&self) -> &ServerUrl {
        &self.url
    }

    fn start_with(options: &[&str]) -> Self {
        let installation = Installation::find().unwrap_or_else(|missing| panic!("{missing}"));
        let workplace = Workplace::temporary(Account::unprivileged());
        let options = [&Self::ALWAYS, options].concat();
        let supervisor = Supervisor::start(&workplace, &installation, &options)
            .unwrap_or_else(|error| panic!("cannot start PostgreSQL: {error}"));
        let url = ServerUrl::of_socket(supervisor.directory());
        wait_until_ready(&url, &supervisor);
        let started = Some(Started { installation, _supervisor: supervisor });
        Self { url, started }
    }
}

fn named_url() -> Option<String> {
    env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty())
}

fn wait_until_ready(url: &ServerUrl, supervisor: &Supervisor) {
    let deadline = Instant::now() + TestServer::PATIENCE;
    while let Err(error) = url.try_connect() {
        assert!(
            Instant::now() < deadline,
            "PostgreSQL does not answer: {error}\nIts log:\n{}",
            supervisor.log()
        );
        thread::sleep(TestServer::POLL_INTERVAL);
    }
}
