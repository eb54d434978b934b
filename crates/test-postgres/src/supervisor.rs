use std::{
    ffi::OsStr,
    fs,
    io::{self, BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use crate::{installation::Installation, template::template, work_directory::WorkDirectory};

/// A shell that runs one server. When its standard input is closed, it ends the server and removes
/// its directory. The system closes the standard input when this process is killed.
#[derive(Debug)]
pub(crate) struct Supervisor {
    shell: Child,
    directory: PathBuf,
}

impl Supervisor {
    pub(crate) fn start<S: AsRef<OsStr>>(
        work_directory: &WorkDirectory,
        installation: &Installation,
        options: &[S],
    ) -> io::Result<Self> {
        let mut shell = work_directory
            .account()
            .command("/bin/sh")
            .args(["-c", include_str!("supervise.sh"), "supervise"])
            .arg(work_directory.path())
            .arg(template(work_directory, installation))
            .arg(installation.program("postgres"))
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C must end the tests before the server.
            .process_group(0)
            .spawn()?;
        let directory = read_directory(&mut shell)?;
        Ok(Self { shell, directory })
    }

    /// The directory of the server's data, socket and log.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The server's log.
    pub(crate) fn log(&self) -> String {
        let path = self.directory.join("log");
        fs::read_to_string(&path)
            .unwrap_or_else(|error| format!("cannot read {}: {error}", path.display()))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // `wait` closes the shell's standard input first. A failure cannot be handled here.
        let _ = self.shell.wait();
    }
}

/// The directory is the first line that the shell prints. Without it, the error is what the shell
/// printed to standard error.
fn read_directory(shell: &mut Child) -> io::Result<PathBuf> {
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
