use std::{
    env,
    fs::{self, File},
    os::unix::{fs::MetadataExt, net::UnixDatagram},
    path::{Path, PathBuf},
    process::Command,
};

use grid_batch_test_support::{
    process::{ProcessOutput, TestProcess, run},
    wait::{wait_for, wait_until},
};
use tempfile::TempDir;

/// Unpacks the archive `$2` into memory at `$1` and boots it; the folder `$3` is at `/packages`. Nothing is left when the
/// process ends.
const BOOT: &str = r#"set -e
mount -t tmpfs -o mode=0755 tmpfs "$1"
tar --extract --numeric-owner --file "$2" --directory "$1"
# The system manager of this machine gives the other one a scope. Without it, the control groups at hand are used.
[ -d /run/systemd/system ] || alone='--register=no --keep-unit'
exec setpriv --pdeathsig KILL systemd-nspawn --quiet $alone --machine=grid-batch-test --directory "$1" \
    --bind-ro="$3:/packages" --console=pipe --notify-ready=yes --boot"#;

const INSTALL: &str = "needed: the programs systemd-nspawn (systemd-container), unshare and setpriv (util-linux) and nsenter; root or \
                       sudo; control groups of version 2; and in GRID_BATCH_TEST_SYSTEMD_ROOT an archive of a root with \
                       systemd, as `scripts/test --systemd` makes";

/// A machine with systemd as its first process, in namespaces of this one; they share the network.
pub struct Machine {
    process: TestProcess,
    /// The id of its first process outside.
    leader: u32,
    _directory: TempDir,
    /// Without a system manager outside, two machines would be in the same control group.
    _lock: File,
}

impl Machine {
    /// Boots a machine without the package, and waits until it is up.
    pub fn boot(packages: &Path) -> Self {
        let archive = env::var_os("GRID_BATCH_TEST_SYSTEMD_ROOT").map(PathBuf::from);
        let archive = archive.unwrap_or_else(|| panic!("{INSTALL}"));
        let lock = File::create(Path::new(env!("CARGO_TARGET_TMPDIR")).join("machine")).unwrap();
        lock.lock().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let notified = directory.path().join("notify");
        let socket = UnixDatagram::bind(&notified).unwrap();
        socket.set_nonblocking(true).unwrap();
        let root = directory.path().join("root");
        fs::create_dir(&root).unwrap();
        let mut command = as_root("env");
        command
            .arg(format!("NOTIFY_SOCKET={}", notified.display()))
            .arg("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
            .args(["unshare", "--mount", "sh", "-c", BOOT, "boot"])
            .args([&root, &archive, packages]);
        let mut process = TestProcess::spawn(command);
        let mut leader = None;
        wait_until("the machine has started", || {
            assert!(
                !process.has_ended(),
                "no machine can be started here; {INSTALL}: {}",
                process.stderr()
            );
            let mut buffer = [0; 4096];
            let Ok(length) = socket.recv(&mut buffer) else { return false };
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            let id = text.lines().find_map(|line| line.strip_prefix("X_NSPAWN_LEADER_PID="));
            leader = id.map(|id| id.parse().unwrap()).or(leader);
            text.lines().any(|line| line == "READY=1")
        });
        Self { process, leader: leader.unwrap(), _directory: directory, _lock: lock }
    }

    /// Runs a script of the shell in the machine.
    pub fn try_run(&self, script: &str) -> ProcessOutput {
        let mut command = as_root("nsenter");
        command
            .args(["--target", &self.leader.to_string()])
            .args(["--mount", "--uts", "--ipc", "--pid", "--cgroup", "--root", "--wd"])
            .args(["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"])
            .args(["DEBIAN_FRONTEND=noninteractive", "sh", "-e", "-c", script]);
        run(command)
    }

    /// Runs a script, which must succeed.
    #[track_caller]
    pub fn run(&self, script: &str) -> String {
        let output = self.try_run(script);
        assert_eq!(output.exit_code, Some(0), "{script}: {output:?}\n{}", self.journal());
        output.stdout.trim_end().to_owned()
    }

    /// A property of the server's unit.
    pub fn property(&self, name: &str) -> String {
        self.run(&format!("systemctl show grid-batch.service --property {name} --value"))
    }

    /// The process of the server that replaces this one, when it accepts requests.
    #[track_caller]
    pub fn wait_for_successor(&self, process_id: &str) -> String {
        wait_for("another process serves", || {
            let now = self.property("MainPID");
            let is_other = now != "0" && now != process_id;
            (is_other && self.property("ActiveState") == "active").then_some(now)
        })
    }

    /// What the server and the system manager have logged about the unit.
    pub fn journal(&self) -> String {
        self.try_run("journalctl --unit grid-batch.service --no-pager --output cat").stdout
    }
}

impl Drop for Machine {
    /// All processes of the machine end with the first one.
    fn drop(&mut self) {
        let _ = as_root("kill").args(["-KILL", &self.leader.to_string()]).status();
        wait_until("the machine has ended", || self.process.has_ended());
    }
}

fn as_root(program: &str) -> Command {
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["--non-interactive", program]);
    command
}
