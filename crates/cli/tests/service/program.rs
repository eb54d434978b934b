use std::{
    ffi::OsStr,
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
};

use tempfile::TempDir;

use crate::until::{until, until_some};

/// The program, not yet started, in an environment that says nothing to it.
pub fn grid_batch<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grid-batch"));
    command.args(arguments).env_clear();
    command
}

/// The same program, started by a shell that does this before.
pub fn after(first: &str, program: Command) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{first} && exec \"$0\" \"$@\"")])
        .arg(program.get_program())
        .args(program.get_args())
        .env_clear()
        .envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// A process whose words are kept, and which ends with the test.
pub struct Program {
    child: Child,
    words: TempDir,
}

/// How a process has ended, and all that it said.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Program {
    /// Starts it, in a directory of its own.
    pub fn start(mut command: Command) -> Self {
        let words = tempfile::tempdir().unwrap();
        // Whoever it runs as must be able to go there.
        fs::set_permissions(words.path(), Permissions::from_mode(0o755)).unwrap();
        let file = |name| File::create(words.path().join(name)).unwrap();
        command
            .current_dir(words.path())
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"));
        Self { child: command.spawn().unwrap(), words }
    }

    pub fn stdout(&self) -> String {
        self.said("stdout")
    }

    pub fn stderr(&self) -> String {
        self.said("stderr")
    }

    fn said(&self, file: &str) -> String {
        let bytes = fs::read(self.words.path().join(file)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// What follows `before`, to the end of the line, once the process has said it.
    pub fn until_it_prints(&mut self, before: &str) -> String {
        until_some(&format!("the program prints {before:?}"), || {
            let has_ended = self.child.try_wait().unwrap();
            let stdout = self.stdout();
            if let Some((_, after)) = stdout.split_once(before)
                && let Some((line, _)) = after.split_once('\n')
            {
                return Some(line.to_owned());
            }
            assert_eq!(has_ended, None, "it has ended: {}", self.stderr());
            None
        })
    }

    pub fn until_it_logs(&self, text: &str) {
        until(&format!("the program logs {text:?}"), || self.stderr().contains(text));
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Kills it as nothing can be killed more.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        assert_no_panic(&self.stderr());
    }

    /// How it ends, which it does soon.
    pub fn ended(mut self) -> Ended {
        let status = until_some("the program ends", || self.child.try_wait().unwrap());
        self.words_of(status)
    }

    fn words_of(&self, status: ExitStatus) -> Ended {
        let ended = Ended { code: status.code(), stdout: self.stdout(), stderr: self.stderr() };
        assert_no_panic(&ended.stderr);
        ended
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the program said:\n{}{}", self.stdout(), self.stderr());
        }
    }
}

impl Ended {
    /// How a run of this ends.
    pub fn of(command: Command) -> Self {
        Program::start(command).ended()
    }

    /// The one line that says why it ended, where it failed as it should.
    #[track_caller]
    pub fn failure(&self) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (Some(1), ""), "{self:?}");
        let line = self.stderr.strip_suffix('\n').unwrap();
        assert!(!line.contains('\n'), "more than a line: {}", self.stderr);
        line.strip_prefix("grid-batch: ").unwrap()
    }
}

#[track_caller]
fn assert_no_panic(stderr: &str) {
    assert!(!stderr.contains("panicked"), "{stderr}");
}
