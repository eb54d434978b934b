use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

/// A node's process, under a shell that ends it, and removes all trace of it, when we let go of the
/// shell's standard input. The system lets go of it for us when we are killed.
#[derive(Debug)]
pub(crate) struct Node {
    shell: Child,
    said: BufReader<ChildStdout>,
    directory: PathBuf,
    port: u16,
}

impl Node {
    /// Starts the node on a free port, and waits until it listens.
    pub(crate) fn start(program: &Path, options: &[String]) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", include_str!("supervise.sh"), "supervise"])
            .arg(program)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the tests; the node ends after them.
            .process_group(0)
            .spawn()?;
        let stdout = shell.stdout.take().ok_or_else(|| io::Error::other("no output is piped"))?;
        let said = BufReader::new(stdout);
        let mut node = Self { shell, said, directory: PathBuf::new(), port: 0 };
        node.wait_until_it_listens()?;
        Ok(node)
    }

    /// Ends the node and starts it again on its port, with the chain it had.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        let port = self.port;
        let stdin = self.shell.stdin.as_mut();
        writeln!(stdin.ok_or_else(|| io::Error::other("no input is piped"))?, "{port}")?;
        self.wait_until_it_listens()
    }

    /// The port that it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Where it wrote its accounts down.
    pub(crate) fn accounts(&self) -> PathBuf {
        self.directory.join("accounts")
    }

    fn wait_until_it_listens(&mut self) -> io::Result<()> {
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        let Some(directory) = line.strip_suffix('\n') else {
            return Err(self.why_it_ended());
        };
        self.directory = directory.into();
        let log = fs::read_to_string(self.directory.join("log"))?;
        self.port = port_in(&log).ok_or_else(|| io::Error::other(log))?;
        Ok(())
    }

    fn why_it_ended(&mut self) -> io::Error {
        let mut message = String::new();
        match self.shell.stderr.take().map(|mut stderr| stderr.read_to_string(&mut message)) {
            Some(Err(error)) => error,
            _ => io::Error::other(message),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // `wait` closes the shell's standard input first. Should it fail, nothing can be done.
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
    fn the_port_is_read_from_what_the_node_says() {
        assert_eq!(port_in("Gas Limit\n\n30000000\n\nListening on 127.0.0.1:45499\n"), Some(45499));
        assert_eq!(port_in("Gas Limit"), None);
    }

    #[test]
    fn a_node_that_does_not_start_says_why() {
        let error = Node::start(Path::new("/nowhere/anvil"), &[]).unwrap_err();
        assert!(error.to_string().contains("/nowhere/anvil"), "{error}");
    }
}
