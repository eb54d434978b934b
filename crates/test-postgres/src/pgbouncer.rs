use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use diesel::{Connection, PgConnection};

use crate::{
    RestartablePostgres,
    account::UnixAccount,
    restartable::{send_signal, wait_until},
};

/// A connection pooler in front of the database of a [`RestartablePostgres`].
///
/// It ends when the value is dropped. [`start`](Self::start) panics if pgbouncer is not installed; the
/// message says what to install.
#[derive(Debug)]
pub struct Pgbouncer {
    process: Child,
    directory: PathBuf,
}

/// How long a client keeps a connection to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// As long as it is connected.
    Session,
    /// For one transaction.
    Transaction,
    /// For one statement.
    Statement,
}

impl Pgbouncer {
    const PORT: u16 = 6432;

    /// Starts a pooler with at most this many connections to the server.
    pub fn start(postgres: &RestartablePostgres, mode: PoolMode, pool_size: u32) -> Self {
        let program = find_program();
        let directory = postgres.directory().join(format!("pgbouncer-{mode:?}-{pool_size}"));
        let configuration = directory.join("pgbouncer.ini");
        let text = configuration_text(postgres.directory(), &directory, mode, pool_size);
        let account = UnixAccount::unprivileged();
        fs::create_dir(&directory)
            .and_then(|()| fs::write(&configuration, text))
            .and_then(|()| account.take_ownership(&directory))
            .unwrap_or_else(|error| panic!("cannot configure pgbouncer: {error}"));
        let process = account
            .command(program)
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run pgbouncer: {error}"));
        let pgbouncer = Self { process, directory };
        let url = pgbouncer.url();
        wait_until("pgbouncer has started", || PgConnection::establish(&url).is_ok());
        pgbouncer
    }

    /// The database's URL for the program under test.
    pub fn url(&self) -> String {
        let host = self.directory.display();
        format!("postgresql:///grid?host={host}&port={}&user=grid", Self::PORT)
    }
}

impl Drop for Pgbouncer {
    fn drop(&mut self) {
        send_signal("QUIT", &self.process.id().to_string());
        let _ = self.process.wait();
    }
}

/// Finds the program on the `PATH`, or in the directory where packages install servers.
fn find_program() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let packages = ["/usr/sbin", "/usr/local/sbin", "/usr/bin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(packages)
        .map(|directory| directory.join("pgbouncer"))
        .find(|program| program.is_file())
        .expect(
            "the tests need pgbouncer: install it, for example with `apt-get install pgbouncer`",
        )
}

fn configuration_text(server: &Path, own: &Path, mode: PoolMode, pool_size: u32) -> String {
    let (server, own) = (server.display(), own.display());
    let (mode, port) = (format!("{mode:?}").to_lowercase(), Pgbouncer::PORT);
    format!(
        "[databases]
         grid = host={server} port=5432 dbname=grid user=grid
         [pgbouncer]
         listen_addr =
         listen_port = {port}
         unix_socket_dir = {own}
         logfile = {own}/log
         auth_type = any
         pool_mode = {mode}
         default_pool_size = {pool_size}
         max_client_conn = 100
        "
    )
}
