use std::{
    fs,
    io::ErrorKind,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use diesel::{Connection, ConnectionResult, PgConnection, connection::SimpleConnection};

use crate::PostgresServer;

/// A PostgreSQL server that a test stops and starts again with its data, and a database `grid` on it.
///
/// The program under test logs in as the user `grid`, who has a limited number of connections. The
/// test logs in as `postgres`.
#[derive(Debug)]
pub struct RestartablePostgres {
    server: PostgresServer,
    directory: PathBuf,
    /// The server's process since the first restart. Until then the supervisor owns it.
    restarted: Mutex<Option<Child>>,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy)]
pub enum StopMode {
    /// Connections are closed, and committed data is written.
    Fast,
    /// As after a power failure.
    Immediate,
}

impl RestartablePostgres {
    const LIMIT: Duration = Duration::from_secs(30);
    const CHECK_INTERVAL: Duration = Duration::from_millis(5);

    /// Starts a server that commits to disk, so that committed data survives each kind of stop. The
    /// user `grid` may have this many connections.
    pub fn start(connection_limit: usize) -> Self {
        let server = PostgresServer::start_durable();
        let directory = server.directory().expect("the server was started here").to_owned();
        let server = Self { server, directory, restarted: Mutex::new(None) };
        server.execute(&format!("create role grid login connection limit {connection_limit}"));
        server.execute("create database grid owner grid");
        server
    }

    /// The database's URL for the program under test.
    pub fn url(&self) -> String {
        self.url_of_user("grid")
    }

    fn url_of_user(&self, user: &str) -> String {
        let url = self.server.url().replacen("/postgres?", "/grid?", 1);
        url.replacen("user=postgres", &format!("user={user}"), 1)
    }

    /// Connects as the program under test does. Fails if its connections are used up.
    pub fn connect(&self) -> ConnectionResult<PgConnection> {
        PgConnection::establish(&self.url())
    }

    /// Connects to the database as the superuser, who has no connection limit.
    pub fn connect_as_superuser(&self) -> ConnectionResult<PgConnection> {
        PgConnection::establish(&self.url_of_user("postgres"))
    }

    /// Executes SQL as the superuser, on a connection to another database of the server.
    pub fn execute(&self, sql: &str) {
        PgConnection::establish(self.server.url())
            .unwrap_or_else(|error| panic!("cannot connect as the superuser: {error}"))
            .batch_execute(sql)
            .unwrap_or_else(|error| panic!("cannot execute {sql:?}: {error}"));
    }

    /// Terminates all connections of the program under test.
    pub fn terminate_connections(&self) {
        self.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'grid'",
        );
    }

    /// Terminates all connections and refuses new ones until
    /// [`accept_connections`](Self::accept_connections).
    pub fn refuse_connections(&self) {
        self.execute("alter database grid allow_connections false");
        self.terminate_connections();
    }

    /// Accepts connections again.
    pub fn accept_connections(&self) {
        self.execute("alter database grid allow_connections true");
    }

    /// Stops the server and waits until it has ended.
    pub fn stop(&self, mode: StopMode) {
        let signal = match mode {
            StopMode::Fast => "INT",
            StopMode::Immediate => "QUIT",
        };
        let process_id = self.process_id();
        assert!(send_signal(signal, &process_id), "cannot send {signal} to {process_id}");
        let pid_file = self.pid_file();
        wait_until("the server has stopped", || {
            fs::metadata(&pid_file).is_err_and(|error| error.kind() == ErrorKind::NotFound)
        });
        let mut restarted = self.restarted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut process) = restarted.take() {
            process.wait().expect("the server's process can be waited for");
        }
    }

    fn pid_file(&self) -> PathBuf {
        self.directory.join("data/postmaster.pid")
    }

    pub(crate) fn process_id(&self) -> String {
        let file = self.pid_file();
        let text = fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
        text.lines().next().expect("the first line is the process id").to_owned()
    }

    /// Starts the stopped server with its data, and with the options of its first start.
    pub fn start_again(&self) {
        let command = self.start_command();
        self.replace_process(self.spawn_shell(&format!("exec {command}")));
    }

    /// The directory of its data, its socket and its log.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The shell command that started it.
    pub fn start_command(&self) -> String {
        let file = self.directory.join("data/postmaster.opts");
        fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()))
    }

    /// Runs a shell command as the owner of the data. Its output goes to the server's log.
    pub fn spawn_shell(&self, command: &str) -> Child {
        let owner = fs::metadata(self.directory.join("data")).expect("the data directory exists");
        let log = fs::File::options().append(true).open(self.directory.join("log"));
        Command::new("sh")
            .args(["-c", command])
            .uid(owner.uid())
            .gid(owner.gid())
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("the server has a log"))
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run sh: {error}"))
    }

    /// Makes this process the server, and waits until it accepts connections.
    pub fn replace_process(&self, process: Child) {
        *self.restarted.lock().unwrap_or_else(PoisonError::into_inner) = Some(process);
        let url = self.server.url();
        wait_until("the server has started", || PgConnection::establish(url).is_ok());
    }
}

pub(crate) fn send_signal(signal: &str, process_id: &str) -> bool {
    let kill = format!("kill -{signal} {process_id}");
    Command::new("sh").args(["-c", &kill]).status().is_ok_and(|status| status.success())
}

pub(crate) fn wait_until(description: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + RestartablePostgres::LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out: {description}");
        thread::sleep(RestartablePostgres::CHECK_INTERVAL);
    }
}

impl Drop for RestartablePostgres {
    fn drop(&mut self) {
        let restarted = self.restarted.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = restarted {
            // Its data is removed next, so the stop need not be clean.
            send_signal("QUIT", &process.id().to_string());
            let _ = process.wait();
        }
    }
}
