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

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_test_postgres::TestServer;

/// A PostgreSQL that can be stopped and started again with all its data, and a database on it.
///
/// The service is let in as `grid`, up to a number of connections, and we are as `postgres`.
#[derive(Debug)]
pub struct Server {
    server: TestServer,
    directory: PathBuf,
    /// The server, where it was started here.
    again: Mutex<Option<Child>>,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy)]
pub enum Stop {
    /// Connections are closed, and what was committed is written.
    Fast,
    /// As by a loss of power.
    Immediate,
}

impl Server {
    const PATIENCE: Duration = Duration::from_secs(30);

    /// Commits are on the disk: what was answered must outlive the server.
    pub fn start(connections: usize) -> Self {
        let server = TestServer::durable();
        let (_, directory) = server.url().split_once("host=").unwrap();
        let directory = directory.split('&').next().unwrap().replace("%2F", "/").into();
        let server = Self { server, directory, again: Mutex::new(None) };
        let mut connection = PgConnection::establish(server.server.url()).unwrap();
        let role = format!("create role grid login connection limit {connections}");
        connection.batch_execute(&role).unwrap();
        connection.batch_execute("create database grid owner grid").unwrap();
        server
    }

    /// The database, for the service.
    pub fn url(&self) -> String {
        self.as_user("grid")
    }

    fn as_user(&self, user: &str) -> String {
        let url = self.server.url().replacen("/postgres?", "/grid?", 1);
        url.replacen("user=postgres", &format!("user={user}"), 1)
    }

    /// A connection as the service has one, where one is left.
    pub fn connect(&self) -> diesel::ConnectionResult<PgConnection> {
        PgConnection::establish(&self.url())
    }

    /// A connection to the database that no limit keeps out.
    pub fn connect_as_owner(&self) -> diesel::ConnectionResult<PgConnection> {
        PgConnection::establish(&self.as_user("postgres"))
    }

    /// Does something to the database from outside of it.
    pub fn run(&self, sql: &str) {
        PgConnection::establish(self.server.url()).unwrap().batch_execute(sql).unwrap();
    }

    /// Breaks all connections of the service.
    pub fn terminate(&self) {
        self.run("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'grid'");
    }

    /// Lets nobody in until [`accept`](Self::accept).
    pub fn refuse(&self) {
        self.run("alter database grid allow_connections false");
        self.terminate();
    }

    pub fn accept(&self) {
        self.run("alter database grid allow_connections true");
    }

    pub fn stop(&self, how: Stop) {
        let signal = match how {
            Stop::Fast => "INT",
            Stop::Immediate => "QUIT",
        };
        let lock = self.directory.join("data/postmaster.pid");
        let text = fs::read_to_string(&lock).unwrap();
        let kill = format!("kill -{signal} {}", text.lines().next().unwrap());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let is_gone =
            || fs::metadata(&lock).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        Self::until("the server has stopped", is_gone);
        if let Some(mut child) = self.again.lock().unwrap().take() {
            child.wait().unwrap();
        }
    }

    /// Starts it as it was started first.
    pub fn go_on(&self) {
        let command = self.command();
        self.become_server(self.spawn(&format!("exec {command}")));
    }

    /// Where it keeps its data, listens, and writes its log.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The command that it was started with.
    pub fn command(&self) -> String {
        fs::read_to_string(self.directory().join("data/postmaster.opts")).unwrap()
    }

    /// Runs a shell command in the name of the data's owner.
    pub fn spawn(&self, command: &str) -> Child {
        let owner = fs::metadata(self.directory.join("data")).unwrap();
        let log = fs::File::options().append(true).open(self.directory.join("log")).unwrap();
        let child = Command::new("sh")
            .args(["-c", command])
            .uid(owner.uid())
            .gid(owner.gid())
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        child.unwrap()
    }

    /// This process is the server from now on.
    pub fn become_server(&self, child: Child) {
        *self.again.lock().unwrap() = Some(child);
        let url = self.server.url();
        Self::until("the server has started", || PgConnection::establish(url).is_ok());
    }

    pub fn until(what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Self::PATIENCE;
        while !is_so() {
            assert!(Instant::now() < deadline, "waited in vain: {what}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let again = self.again.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(child) = again {
            // Its data is thrown away next, and nobody is left to tell.
            let _ = Command::new("sh").args(["-c", &format!("kill -QUIT {}", child.id())]).status();
            let _ = child.wait();
        }
    }
}
