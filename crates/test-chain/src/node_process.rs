use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

/// The process of a node. It runs under a shell that stops it and deletes its files when the shell's
/// standard input is closed. The system closes it if this process is killed.
#[derive(Debug)]
pub(crate) struct NodeProcess {
    shell: Child,
    stdout: BufReader<ChildStdout>,
    directory: PathBuf,
    port: u16,
}

impl NodeProcess {
    /// Starts the node on a free port and waits until it listens.
    pub(crate) fn start(program: &Path, options: &[String]) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", include_str!("supervise.sh"), "supervise"])
            .arg(program)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C must reach the tests only; the node ends after them.
            .process_group(0)
            .spawn()?;
        let stdout = shell.stdout.take().ok_or_else(|| io::Error::other("stdout is not piped"))?;
        let stdout = BufReader::new(stdout);
        let mut node = Self { shell, stdout, directory: PathBuf::new(), port: 0 };
        node.wait_until_it_listens()?;
        Ok(node)
    }

    /// Restarts the node on its port, with its chain.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        let port = self.port;
        let stdin = self.shell.stdin.as_mut();
        writeln!(stdin.ok_or_else(|| io::Error::other("stdin is not piped"))?, "{port}")?;
        self.wait_until_it_listens()
    }

    /// The port of the node.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The file with its accounts.
    pub(crate) fn accounts_file(&self) -> PathBuf {
        self.directory.join("accounts")
    }

    fn wait_until_it_listens(&mut self) -> io::Result<()> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let Some(directory) = line.strip_suffix('\n') else {
            return Err(self.exit_reason());
        };
        self.directory = directory.into();
        let log = fs::read_to_string(self.directory.join("log"))?;
        self.port = port_in(&log).ok_or_else(|| io::Error::other(log))?;
        Ok(())
    }

    fn exit_reason(&mut self) -> io::Error {
        let mut message = String::new();
        match self.shell.stderr.take().map(|mut stderr| stderr.read_to_string(&mut message)) {
            Some(Err(error)) => error,
            _ => io::Error::other(message),
        }
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // `wait` closes the shell's standard input first. An error cannot be handled here.
        let _ = self.shell.wait();
    }
}

fn port_in(log: &str) -> Option<u16> {
    let address = log.lines().find_map(|line| line.strip_prefix("Listening on "))?;
    address.rsplit_once(':')?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_read_from_the_log() {
        assert_eq!(port_in("Gas Limit\n\n30000000\n\nListening on 127.0.0.1:45499\n"), Some(45499));
        assert_eq!(port_in("Gas Limit"), None);
    }

    #[test]
    fn failed_start_reports_the_reason() {
        let error = NodeProcess::start(Path::new("/nowhere/anvil"), &[]).unwrap_err();
        assert!(error.to_string().contains("/nowhere/anvil"), "{error}");
    }
}
