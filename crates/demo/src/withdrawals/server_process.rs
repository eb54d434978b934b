//! The server as a separate process, so that it can be killed.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use tempfile::TempDir;

use super::{
    WithdrawalDemoOptions,
    chain::{CHAIN_ID, DemoChain},
    settings::{MAXIMUM_GAS_PRICE_GWEI, SETTINGS},
};
use crate::{DemoError, directory::write_private};

/// A running server. It is killed when this value is dropped, or when this process ends for any reason.
pub(super) struct ServerProcess {
    shell: Child,
    url: String,
}

/// Starts the program, and kills it when the shell's standard input is closed.
const SUPERVISOR: &str = r#"exec 3<&0
"$0" "$@" </dev/null 3<&- &
pid=$!
{ read -r _ <&3; kill -9 "$pid"; } 2>/dev/null &
wait "$pid" 2>/dev/null"#;

impl ServerProcess {
    /// Starts the program on the chain, and on the database of an earlier process.
    pub(super) fn start(
        options: &WithdrawalDemoOptions,
        chain: &DemoChain,
        directory: &ServerDirectory,
    ) -> Result<Self, DemoError> {
        let mut shell = Command::new("sh")
            .args(["-c", SUPERVISOR])
            .arg(&options.program)
            .arg("serve")
            .args(directory.flags(options, chain)?)
            .env_clear()
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C must reach the demonstration only; the server ends with it.
            .process_group(0)
            .spawn()
            .map_err(DemoError::internal)?;
        let stdout = shell
            .stdout
            .take()
            .ok_or_else(|| DemoError::internal("the server has no standard output"))?;
        let url = read_url(stdout)?;
        Ok(Self { shell, url })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Kills the server with SIGKILL.
    pub(super) fn kill(&mut self) -> Result<(), DemoError> {
        drop(self.shell.stdin.take());
        self.shell.wait().map(drop).map_err(DemoError::internal)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // `drop` cannot report an error.
        let _ = self.kill();
    }
}

/// Reads the URL that the program prints when it is ready.
fn read_url(stdout: ChildStdout) -> Result<String, DemoError> {
    const PREFIX: &str = "Accepting withdrawals at ";
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(DemoError::internal)?;
        if let Some(url) = line.strip_prefix(PREFIX) {
            return Ok(url.trim_end_matches("/withdrawals").to_owned());
        }
    }
    Err(DemoError::internal("the server did not start; see its output above"))
}

/// The directory of the server's keys and, by default, its database.
pub(super) struct ServerDirectory(TempDir);

impl ServerDirectory {
    pub(super) fn new(chain: &DemoChain) -> Result<Self, DemoError> {
        let directory = TempDir::with_prefix("grid-batch-demo-").map_err(DemoError::internal)?;
        let directory = Self(directory);
        for (index, account) in chain.gas_admins().iter().enumerate() {
            write_private(&directory.key_file(index), &account.secret_key)?;
        }
        Ok(directory)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn key_file(&self, index: usize) -> PathBuf {
        self.path().join(format!("gas-admin-{index}.key"))
    }

    fn flags(
        &self,
        options: &WithdrawalDemoOptions,
        chain: &DemoChain,
    ) -> Result<Vec<String>, DemoError> {
        let gas_admins: Vec<String> = (0..chain.gas_admins().len())
            .map(|index| format!("gas-admin-{index}={}", self.key_file(index).display()))
            .collect();
        let pools: Vec<String> =
            chain.pools().map(|(pool, index)| format!("{pool}=gas-admin-{index}")).collect();
        let database = options.database.clone().unwrap_or_else(|| "sqlite://demo.db".to_owned());
        let variable = [
            ("database", database),
            ("log", options.log.clone()),
            ("ledger.urls", chain.url().to_owned()),
            ("evm.chain_id", CHAIN_ID.to_owned()),
            ("evm.maximum_gas_price", MAXIMUM_GAS_PRICE_GWEI.to_string()),
            ("gas_admins.*.key", gas_admins.join(",")),
            ("pools.*.gas_admin", pools.join(",")),
        ];
        let fixed = SETTINGS.iter().map(|(name, text)| (*name, (*text).to_owned()));
        let mut flags = Vec::new();
        for (name, text) in variable.into_iter().chain(fixed) {
            let setting = grid_batch_service::SETTINGS.named(name);
            let no_setting = || DemoError::internal(format!("there is no setting {name}"));
            flags.extend([format!("--{}", setting.ok_or_else(no_setting)?.flag()), text]);
        }
        Ok(flags)
    }
}
