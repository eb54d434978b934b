use std::{
    env, fs,
    net::SocketAddr,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use diesel::{RunQueryDsl, dsl::sql, select, sql_types::Text};

use crate::{
    account::UnixAccount,
    installation::Installation,
    server_url::{ServerUrl, URL_VARIABLE},
    supervisor::Supervisor,
    work_directory::WorkDirectory,
};

/// A PostgreSQL server for tests.
///
/// A server that this type started ends, and its data is removed, when the value is dropped or the
/// process ends, even if it is killed.
///
/// The functions panic if a program is missing; the message says which.
#[derive(Debug)]
pub struct PostgresServer {
    url: ServerUrl,
    started: Option<StartedServer>,
}

#[derive(Debug)]
struct StartedServer {
    installation: Installation,
    supervisor: Supervisor,
}

impl PostgresServer {
    /// Longer than a start takes on a busy machine.
    const START_LIMIT: Duration = Duration::from_secs(60);
    const POLL_INTERVAL: Duration = Duration::from_millis(5);

    const COMMON_OPTIONS: [&str; 2] = ["-clisten_addresses=", "-cmax_connections=200"];
    const FAST_OPTIONS: [&str; 4] = [
        "-cfsync=off",
        "-cfull_page_writes=off",
        "-csynchronous_commit=off",
        "-cshared_buffers=32MB",
    ];
    const DURABLE_OPTIONS: [&str; 3] =
        ["-cfsync=on", "-cfull_page_writes=on", "-csynchronous_commit=on"];

    /// The server that `GRID_BATCH_TEST_DATABASE_URL` names. If the variable is not set, a new one.
    pub fn from_env_or_start() -> Self {
        match url_from_env() {
            Some(url) => Self { url: ServerUrl::from_text(url), started: None },
            None => Self::start(),
        }
    }

    /// Starts a server that is fast because it never waits for the disk.
    pub fn start() -> Self {
        Self::start_with(&Self::FAST_OPTIONS)
    }

    /// Starts a server that commits to disk, as in production. Benchmarks and crash tests need it.
    ///
    /// Its data directory is in the directory for temporary files. If that is in memory, set
    /// `TMPDIR`.
    pub fn start_durable() -> Self {
        Self::start_durable_with(&[])
    }

    /// Like [`start_durable`](Self::start_durable), with more options, such as
    /// `-cshared_preload_libraries=pg_stat_statements`.
    pub fn start_durable_with(options: &[&str]) -> Self {
        Self::start_with(&[&Self::DURABLE_OPTIONS, options].concat())
    }

    /// Like [`start`](Self::start), and listens at this address too.
    pub(crate) fn start_at(address: SocketAddr) -> Self {
        let listen = format!("-clisten_addresses={}", address.ip());
        let port = format!("-cport={}", address.port());
        let options = [&Self::FAST_OPTIONS[..], &[listen.as_str(), port.as_str()]].concat();
        Self::start_on_port(address.port(), &options)
    }

    /// Whether [`from_env_or_start`](Self::from_env_or_start) can succeed.
    pub fn is_available() -> bool {
        url_from_env().is_some() || Installation::find().is_ok()
    }

    /// Its URL for libpq.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Its version and where it comes from, without passwords.
    pub fn description(&self) -> String {
        let origin = match &self.started {
            Some(started) => format!("temporary, programs in {}", started.installation),
            None => format!("from {URL_VARIABLE}: {}", self.url),
        };
        let version: String = select(sql::<Text>("current_setting('server_version')"))
            .get_result(&mut self.url.connect())
            .unwrap_or_else(|error| panic!("cannot read the version of {}: {error}", self.url));
        format!("PostgreSQL {version}, {origin}")
    }

    pub(crate) fn server_url(&self) -> &ServerUrl {
        &self.url
    }

    /// The directory of the data and the socket, if this process started the server.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.started.as_ref().map(|started| started.supervisor.directory())
    }

    /// The id of its main process, the parent of all its other processes, if this process started the server.
    pub fn process_id(&self) -> Option<u32> {
        let file = fs::read_to_string(self.directory()?.join("data/postmaster.pid")).ok()?;
        file.lines().next()?.parse().ok()
    }

    fn start_with(options: &[&str]) -> Self {
        const DEFAULT_PORT: u16 = 5432;
        Self::start_on_port(DEFAULT_PORT, options)
    }

    /// The port is a part of the name of the socket.
    fn start_on_port(port: u16, options: &[&str]) -> Self {
        let installation = Installation::find().unwrap_or_else(|error| panic!("{error}"));
        let work_directory = WorkDirectory::temporary(UnixAccount::unprivileged());
        let options = [&Self::COMMON_OPTIONS, options].concat();
        let supervisor = Supervisor::start(&work_directory, &installation, &options)
            .unwrap_or_else(|error| panic!("cannot start PostgreSQL: {error}"));
        let url = ServerUrl::from_socket_directory(supervisor.directory(), port);
        wait_until_ready(&url, &supervisor);
        let started = Some(StartedServer { installation, supervisor });
        Self { url, started }
    }
}

fn url_from_env() -> Option<String> {
    env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty())
}

fn wait_until_ready(url: &ServerUrl, supervisor: &Supervisor) {
    let deadline = Instant::now() + PostgresServer::START_LIMIT;
    while let Err(error) = url.try_connect() {
        assert!(
            Instant::now() < deadline,
            "PostgreSQL did not start in time: {error}\nIts log:\n{}",
            supervisor.log()
        );
        thread::sleep(PostgresServer::POLL_INTERVAL);
    }
}
