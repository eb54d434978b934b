use std::fs;

use crate::{RestartablePostgres, restartable::send_signal};

/// A server whose processes are stopped: connections stay open, and nothing is answered. Dropping it
/// lets the server continue.
#[derive(Debug)]
pub struct FrozenPostgres {
    processes: Vec<String>,
}

impl RestartablePostgres {
    /// Stops all processes of the server, as a machine that hangs does.
    pub fn freeze(&self) -> FrozenPostgres {
        let main = self.process_id();
        assert!(send_signal("STOP", &main), "cannot stop {main}");
        // The stopped server starts no process meanwhile.
        let processes = [vec![main.clone()], children(&main)].concat();
        for process in &processes[1..] {
            // A process may have ended.
            send_signal("STOP", process);
        }
        FrozenPostgres { processes }
    }
}

impl Drop for FrozenPostgres {
    fn drop(&mut self) {
        for process in &self.processes {
            send_signal("CONT", process);
        }
    }
}

/// The processes whose parent is this one.
fn children(parent: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("/proc can be read");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|process| parent_of(process).as_deref() == Some(parent))
        .collect()
}

/// The name of a process, which `stat` has in parentheses, may contain anything.
fn parent_of(process: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.split(' ').nth(1).map(ToOwned::to_owned)
}
