use std::{
    fs::{self, File},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A process that serves.
#[derive(Debug)]
pub struct Instance {
    child: Child,
    pub address: SocketAddr,
}

/// Where an instance runs, one after the other.
#[derive(Debug)]
pub struct Place {
    pub name: String,
    /// What all of them say.
    pub log: PathBuf,
}

impl Place {
    const PATIENCE: Duration = Duration::from_secs(20);
    const LOOK_EVERY: Duration = Duration::from_millis(10);

    /// Starts an instance. `None`: it ended instead, and has said why.
    pub fn start(&self, mut command: Command) -> Option<Instance> {
        let said = self.log.with_extension("stdout");
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        command.stdin(Stdio::null()).stdout(File::create(&said).unwrap()).stderr(log);
        let mut child = command.spawn().unwrap();
        let deadline = Instant::now() + Self::PATIENCE;
        while Instant::now() < deadline {
            let ended = child.try_wait().unwrap();
            if let Some(address) = address_in(&fs::read_to_string(&said).unwrap()) {
                return Some(Instance { child, address });
            }
            if ended.is_some() {
                return None;
            }
            thread::sleep(Self::LOOK_EVERY);
        }
        end(child);
        panic!("{} neither serves nor ends", self.name);
    }
}

fn address_in(said: &str) -> Option<SocketAddr> {
    let (_, url) = said.split_once("Batches are taken at http://")?;
    let (address, _) = url.split_once("/batches\n")?;
    address.parse().ok()
}

fn end(mut child: Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

impl Instance {
    /// Longer than any drain takes.
    const PATIENCE: Duration = Duration::from_secs(20);

    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Tells it to end, and waits until it has. An error names the threads that keep it.
    pub fn stop(mut self) -> Result<ExitStatus, String> {
        self.signal("TERM");
        let deadline = Instant::now() + Self::PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.has_ended() {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(self.threads().join(", "))
    }

    /// Their names, on a system that tells them.
    fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let names = tasks.into_iter().flatten().flatten().map(|task| task.path().join("comm"));
        names.flat_map(fs::read_to_string).map(|name| name.trim_end().to_owned()).collect()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
