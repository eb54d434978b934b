use std::{
    fs::{self, File},
    process::{Child, Command, ExitStatus, Stdio},
    thread::{self, sleep},
    time::Instant,
};

use tempfile::TempDir;

use crate::{CHECK_INTERVAL, LIMIT};

/// A server that a test has started. It is killed when the value is dropped.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    directory: TempDir,
}

impl ServerProcess {
    /// Starts the server in an empty directory of its own.
    pub fn start(mut command: Command) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = |name| File::create(directory.path().join(name)).unwrap();
        command
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"));
        Self { child: command.spawn().unwrap(), directory }
    }

    /// Waits until it has printed the URL where it listens, and returns that without a path.
    #[track_caller]
    pub fn url(&mut self) -> String {
        let started = Instant::now();
        loop {
            let ended = self.ended();
            let stdout = self.output("stdout");
            let line = stdout.split_once("http://").and_then(|(_, rest)| rest.split_once('\n'));
            if let Some((line, _)) = line {
                return format!("http://{}", line.split('/').next().unwrap_or_default());
            }
            assert_eq!(ended, None, "the server has ended: {}", self.log());
            assert!(started.elapsed() < LIMIT, "waited {LIMIT:?} until the server listens");
            sleep(CHECK_INTERVAL);
        }
    }

    /// What it has printed to its standard error.
    pub fn log(&self) -> String {
        self.output("stderr")
    }

    fn output(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap()
    }

    /// How it has ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Kills it.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let log = self.log();
        assert!(!log.contains("panicked"), "{log}");
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail when the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("output of the server:\n{}{}", self.output("stdout"), self.log());
        }
    }
}
