//! Running the `grid-batch` binary as a child process.

use std::{
    ffi::OsStr,
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Stdio},
    thread,
};

use tempfile::TempDir;

use crate::wait::{wait_for, wait_until};

/// The path of a `grid-batch` binary.
#[derive(Debug, Clone, Copy)]
pub struct Binary(pub &'static str);

impl Binary {
    /// A command that runs the binary with these arguments and an empty environment.
    pub fn command<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(self.0);
        command.args(arguments).env_clear();
        command
    }
}

/// The same command, run by a shell after `setup`, such as `ulimit -n 1024`.
pub fn with_shell_setup(setup: &str, command: Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{setup} && exec \"$0\" \"$@\"")])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

/// Runs a command to its end.
pub fn run(command: Command) -> ProcessOutput {
    TestProcess::spawn(command).wait()
}

/// Sends a signal, such as `TERM`, to a process.
pub fn send_signal(process_id: u32, signal: &str) {
    let kill = format!("kill -{signal} {process_id}");
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
}

/// A running child process whose output is captured. It is killed when the value is dropped.
pub struct TestProcess {
    child: Child,
    directory: TempDir,
}

/// How a process ended, and what it printed.
#[derive(Debug)]
pub struct ProcessOutput {
    /// The exit code. `None` if the process was ended by a signal.
    pub exit_code: Option<i32>,
    /// What it printed to standard output.
    pub stdout: String,
    /// What it printed to standard error.
    pub stderr: String,
}

impl TestProcess {
    /// Starts the command in an empty directory of its own.
    pub fn spawn(mut command: Command) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // The command may run as another user.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let file = |name| File::create(directory.path().join(name)).unwrap();
        command
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"));
        Self { child: command.spawn().unwrap(), directory }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed to standard output.
    pub fn stdout(&self) -> String {
        self.output("stdout")
    }

    /// What it has printed to standard error, where the log goes.
    pub fn stderr(&self) -> String {
        self.output("stderr")
    }

    fn output(&self, file: &str) -> String {
        let bytes = fs::read(self.directory.path().join(file)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Waits for a line with `prefix` on standard output and returns the rest of the line.
    #[track_caller]
    pub fn wait_for_stdout(&mut self, prefix: &str) -> String {
        wait_for(&format!("the process prints {prefix:?}"), || {
            let exit_status = self.child.try_wait().unwrap();
            let stdout = self.stdout();
            if let Some((_, after)) = stdout.split_once(prefix)
                && let Some((line, _)) = after.split_once('\n')
            {
                return Some(line.to_owned());
            }
            assert_eq!(exit_status, None, "the process has ended: {}", self.stderr());
            None
        })
    }

    /// Waits until the log contains the text.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str) {
        wait_until(&format!("the process logs {text:?}"), || self.stderr().contains(text));
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, signal: &str) {
        send_signal(self.child.id(), signal);
    }

    /// Its peak memory use since its start, in bytes, on Linux.
    pub fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kibibytes: u64 = peak.trim().trim_end_matches("kB").trim().parse().unwrap();
        kibibytes * 1024
    }

    /// Whether it has installed a handler for the signal with this number.
    pub fn catches_signal(&self, number: u32) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        u64::from_str_radix(caught, 16).unwrap() >> (number - 1) & 1 == 1
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        assert_no_panic(&self.stderr());
    }

    /// Waits until it ends.
    #[track_caller]
    pub fn wait(mut self) -> ProcessOutput {
        let status = wait_for("the process ends", || self.child.try_wait().unwrap());
        let output = ProcessOutput {
            exit_code: status.code(),
            stdout: self.stdout(),
            stderr: self.stderr(),
        };
        assert_no_panic(&output.stderr);
        output
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        // Both fail when the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("output of the process:\n{}{}", self.stdout(), self.stderr());
        }
    }
}

impl ProcessOutput {
    /// The error message: the only line that a failed command prints, without the name of the
    /// program. The exit code is that of an error, of something that is not available, or of the
    /// configuration.
    #[track_caller]
    pub fn error_message(&self) -> &str {
        assert!(matches!(self.exit_code, Some(1 | 69 | 78)) && self.stdout.is_empty(), "{self:?}");
        let line = self.stderr.strip_suffix('\n').unwrap();
        assert!(!line.contains('\n'), "more than one line: {}", self.stderr);
        line.strip_prefix("grid-batch: ").unwrap()
    }
}

#[track_caller]
fn assert_no_panic(stderr: &str) {
    assert!(!stderr.contains("panicked"), "{stderr}");
}
