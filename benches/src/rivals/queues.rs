//! The queues that are compared, each driven by a script.

use std::{
    fmt::Write as _,
    io::{self, Write},
    path::Path,
    process::{Command, Stdio},
};

use super::{Case, Outcome};
use crate::database::{Database, DatabaseKind};

/// After this time of work, a script stops itself and reports what its queue has done.
pub(super) const LIMIT_SECONDS: &str = "10";

pub(super) const QUEUES: [Queue; 3] = [
    Queue { name: "graphile-worker", program: "node", script: "queues.mjs" },
    Queue { name: "pg-boss", program: "node", script: "queues.mjs" },
    Queue { name: "procrastinate", program: "python", script: "procrastinate_queue.py" },
];

pub(super) struct Queue {
    pub(super) name: &'static str,
    program: &'static str,
    script: &'static str,
}

impl Queue {
    /// Passes the units through the queue in an empty database.
    pub(super) fn pass(&self, scripts: &Path, case: Case) -> io::Result<Outcome> {
        let directory = tempfile::tempdir()?;
        let database = Database::create(DatabaseKind::Postgres, directory.path());
        let mut process = Command::new(self.program)
            .arg(scripts.join(self.script))
            .args([self.name, &database.url(), LIMIT_SECONDS])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut keys = String::new();
        for key in case.keys_of_units() {
            let _ = writeln!(keys, "key-{key}");
        }
        // The pipe is closed at the end of this statement.
        process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?.write_all(keys.as_bytes())?;
        let output = process.wait_with_output()?;
        if !output.status.success() {
            return Err(io::Error::other(format!("{} failed: {}", self.name, output.status)));
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
