//! Server instances that are started again after they end.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::process::send_signal;

/// What a server that takes batches prints before its address once it listens.
pub const LISTENING_PREFIX: &str = "Accepting batches at http://";
/// What it prints after its address.
pub const LISTENING_SUFFIX: &str = "/batches";

const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// A name and a log for server instances that run one at a time.
#[derive(Debug)]
pub struct InstanceSlot {
    /// The name of the slot, for messages.
    pub name: String,
    /// The log of all instances that ran in the slot.
    pub log: PathBuf,
}

/// A running server instance. It is killed when the value is dropped.
#[derive(Debug)]
pub struct Instance {
    child: Child,
    /// Where it takes requests.
    pub address: SocketAddr,
}

impl InstanceSlot {
    const START_LIMIT: Duration = Duration::from_secs(20);

    /// Starts an instance and waits until it listens. Returns `None` if it ended instead; its log
    /// says why.
    pub fn start(&self, mut command: Command) -> Option<Instance> {
        let stdout = self.log.with_extension("stdout");
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        command.stdin(Stdio::null()).stdout(File::create(&stdout).unwrap()).stderr(log);
        let mut child = command.spawn().unwrap();
        let deadline = Instant::now() + Self::START_LIMIT;
        while Instant::now() < deadline {
            let exit_status = child.try_wait().unwrap();
            if let Some(address) = listening_address(&fs::read_to_string(&stdout).unwrap()) {
                return Some(Instance { child, address });
            }
            if exit_status.is_some() {
                return None;
            }
            thread::sleep(CHECK_INTERVAL);
        }
        kill(&mut child);
        panic!("{} neither listens nor ends within {:?}", self.name, Self::START_LIMIT);
    }
}

fn listening_address(stdout: &str) -> Option<SocketAddr> {
    let (_, url) = stdout.split_once(LISTENING_PREFIX)?;
    let (line, _) = url.split_once('\n')?;
    line.strip_suffix(LISTENING_SUFFIX)?.parse().ok()
}

fn kill(child: &mut Child) {
    // Both fail when the process has already ended.
    let _ = child.kill();
    let _ = child.wait();
}

impl Instance {
    /// Longer than any drain takes.
    const STOP_LIMIT: Duration = Duration::from_secs(20);

    /// The exit status, if it has ended.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Kills it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal, such as `STOP`.
    pub fn signal(&self, signal: &str) {
        send_signal(self.child.id(), signal);
    }

    /// Sends SIGTERM and waits until it has ended. If it does not end in time, the error lists the
    /// threads that still run.
    pub fn stop(mut self) -> Result<ExitStatus, String> {
        self.signal("TERM");
        let deadline = Instant::now() + Self::STOP_LIMIT;
        while Instant::now() < deadline {
            if let Some(status) = self.exit_status() {
                return Ok(status);
            }
            thread::sleep(CHECK_INTERVAL);
        }
        Err(self.thread_names().join(", "))
    }

    /// The names of its threads; empty on a system without `/proc`.
    fn thread_names(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let names = tasks.into_iter().flatten().flatten().map(|task| task.path().join("comm"));
        names.flat_map(fs::read_to_string).map(|name| name.trim_end().to_owned()).collect()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}
