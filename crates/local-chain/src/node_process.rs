use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use crate::{
    Account, AnvilOptions, Node,
    account::{printed_accounts, read_accounts},
};

/// The process of a node. It runs under a shell that stops it and deletes its files when the shell's
/// standard input is closed. The system closes it if this process is killed.
#[derive(Debug)]
pub(crate) struct NodeProcess {
    shell: Child,
    stdout: BufReader<ChildStdout>,
    directory: PathBuf,
    node: Node,
    port: u16,
}

impl NodeProcess {
    /// Starts the node on a free port and waits until it listens.
    pub(crate) fn start(node: Node, program: &Path, options: &AnvilOptions) -> io::Result<Self> {
        let facts = node.facts();
        let arguments = if node == Node::Anvil { options.arguments() } else { Vec::new() };
        let mut shell = Command::new("/bin/sh")
            .args(["-c", include_str!("supervise.sh"), "supervise", facts.name])
            .arg(program)
            .args(facts.script)
            .args(arguments)
            .env("CHAIN_OPTIONS", options.to_json().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C must reach the tests only; the node ends after them.
            .process_group(0)
            .spawn()?;
        let stdout = shell.stdout.take().ok_or_else(|| io::Error::other("stdout is not piped"))?;
        let stdout = BufReader::new(stdout);
        let mut process = Self { shell, stdout, directory: PathBuf::new(), node, port: 0 };
        process.wait_until_it_listens()?;
        Ok(process)
    }

    /// Restarts the node on its port, with its chain.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        let facts = self.node.facts();
        if !facts.keeps_chain {
            return Err(io::Error::other(format!("{} keeps no chain on disk", facts.name)));
        }
        let port = self.port;
        let stdin = self.shell.stdin.as_mut();
        writeln!(stdin.ok_or_else(|| io::Error::other("stdin is not piped"))?, "{port}")?;
        self.wait_until_it_listens()
    }

    /// The port of the node.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The accounts with a balance from the start.
    pub(crate) fn accounts(&self) -> io::Result<Vec<Account>> {
        if self.node.facts().prints_accounts {
            return Ok(printed_accounts(&self.log()?));
        }
        read_accounts(&self.directory.join("accounts"))
    }

    fn log(&self) -> io::Result<String> {
        fs::read_to_string(self.directory.join("log"))
    }

    fn wait_until_it_listens(&mut self) -> io::Result<()> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let Some(directory) = line.strip_suffix('\n') else {
            return Err(self.exit_reason());
        };
        self.directory = directory.into();
        let log = self.log()?;
        self.port = port_in(self.node, &log).ok_or_else(|| io::Error::other(log))?;
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

fn port_in(node: Node, log: &str) -> Option<u16> {
    let address = log.lines().find_map(|line| line.strip_prefix(node.facts().address_prefix))?;
    address.rsplit_once(':')?.1.trim().trim_end_matches('/').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_read_from_the_log() {
        let anvil = "Gas Limit\n\n30000000\n\nListening on 127.0.0.1:45499\n";
        assert_eq!(port_in(Node::Anvil, anvil), Some(45499));
        assert_eq!(port_in(Node::Anvil, "Gas Limit"), None);
        let hardhat = "Started HTTP and WebSocket JSON-RPC server at http://127.0.0.1:38073/\n";
        assert_eq!(port_in(Node::Hardhat, hardhat), Some(38073));
    }

    #[test]
    fn failed_start_reports_the_reason() {
        let error =
            NodeProcess::start(Node::Anvil, Path::new("/nowhere/anvil"), &AnvilOptions::default())
                .unwrap_err();
        assert!(error.to_string().contains("/nowhere/anvil"), "{error}");
    }
}
