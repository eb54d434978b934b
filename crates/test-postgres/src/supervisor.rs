use std::{
    ffi::OsStr,
    fs,
    io::{self, BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use crate::{installation::Installation, template::template, workplace::Workplace};

/// A shell that runs one server and ends it, and removes all trace of it, when we let go of the
/// shell's standard input. The system lets go of it for us when we are killed.
#[derive(Debug)]
pub(crate) struct Supervisor {
    shell: Child,
    directory: PathBuf,
}

impl Supervisor {
    pub(crate) fn start<S: AsRef<OsStr>>(
        workplace: &Workplace,
        installation: &Installation,
        options: &[S],
    ) -> io::Result<Self> {
        let mut shell = workplace
            .account()
            .command("/bin/sh")
            .args(["-c", include_str!("supervise.sh"), "supervise"])
            .arg(workplace.path())
            .arg(template(workplace, installation))
            .arg(installation.program("postgres"))
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the tests; the server ends after them.
            .process_group(0)
            .spawn()?;
        let directory = directory_said_by(&mut shell)?;
        Ok(Self { shell, directory })
    }

    /// Where the server has its socket.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// What the server said.
    pub(crate) fn log(&self) -> String {
        let path = self.directory.join("log");
        fs::read_to_string(path).unwrap_or_else(|error| format!("there is no log: {error}"))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // `wait` closes the shell's standard input first. Should it fail, nothing can be done.
        let _ = self.shell.wait();
    }
}

/// The directory, which the shell says first of all; or why it could not make it.
fn directory_said_by(shell: &mut Child) -> io::Result<PathBuf> {
    let (Some(stdout), Some(mut stderr)) = (shell.stdout.take(), shell.stderr.take()) else {
        return Err(io::Error::other("the shell's output is not piped"));
    };
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    if let Some(directory) = line.strip_suffix('\n') {
        return Ok(directory.into());
    }
    let mut message = String::new();
    stderr.read_to_string(&mut message)?;
    Err(io::Error::other(message))
}
