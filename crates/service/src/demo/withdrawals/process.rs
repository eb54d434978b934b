//! The service as a process of its own, so that it can be killed.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use tempfile::TempDir;

use crate::demo::{
    DemoError,
    withdrawals::{
        WithdrawalDemoOptions,
        chain::{CHAIN_ID, Chain},
        settings::{CAP_GWEI, SETTINGS},
    },
};

/// A service that ends with this value, and with this process in whatever way that ends.
pub(super) struct Process {
    shell: Child,
    url: String,
}

/// The program is started, and killed once our end of the pipe is closed.
const KEEPER: &str = r#"exec 3<&0
"$0" "$@" </dev/null 3<&- &
pid=$!
{ read -r _ <&3; kill -9 "$pid"; } 2>/dev/null &
wait "$pid" 2>/dev/null"#;

impl Process {
    /// Starts the program beside the chain, on what was left by the one before.
    pub(super) fn start(
        options: &WithdrawalDemoOptions,
        chain: &Chain,
        place: &Place,
    ) -> Result<Self, DemoError> {
        let mut shell = Command::new("sh")
            .args(["-c", KEEPER])
            .arg(&options.program)
            .arg("serve")
            .args(place.flags(options, chain)?)
            .env_clear()
            .current_dir(place.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(DemoError::internal)?;
        let stdout = shell.stdout.take().ok_or_else(|| DemoError::internal("no output"))?;
        let url = url_in(stdout)?;
        Ok(Self { shell, url })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Kills it as nothing can be killed more.
    pub(super) fn kill(&mut self) -> Result<(), DemoError> {
        drop(self.shell.stdin.take());
        self.shell.wait().map(drop).map_err(DemoError::internal)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Where it cannot be ended, there is nobody to tell.
        let _ = self.kill();
    }
}

/// What the program says when it is ready: where withdrawals are taken.
fn url_in(stdout: ChildStdout) -> Result<String, DemoError> {
    const BEFORE: &str = "Withdrawals are taken at ";
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(DemoError::internal)?;
        if let Some(url) = line.strip_prefix(BEFORE) {
            return Ok(url.trim_end_matches("/withdrawals").to_owned());
        }
    }
    Err(DemoError::internal("the service did not start; what it said stands above"))
}

/// Where the service keeps its keys and, unless it was told otherwise, its database.
pub(super) struct Place(TempDir);

impl Place {
    pub(super) fn new(chain: &Chain) -> Result<Self, DemoError> {
        let place = TempDir::with_prefix("grid-batch-demo-").map_err(DemoError::internal)?;
        let place = Self(place);
        for (index, account) in chain.gas_admins().iter().enumerate() {
            let file = place.key(index);
            let written =
                fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
            written
                .and_then(|mut key| key.write_all(account.secret_key.as_bytes()))
                .map_err(|error| DemoError::place(&file, &error))?;
        }
        Ok(place)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn key(&self, index: usize) -> std::path::PathBuf {
        self.path().join(format!("gas-admin-{index}.key"))
    }

    fn flags(
        &self,
        options: &WithdrawalDemoOptions,
        chain: &Chain,
    ) -> Result<Vec<String>, DemoError> {
        let gas_admins: Vec<String> = (0..chain.gas_admins().len())
            .map(|index| format!("gas-admin-{index}={}", self.key(index).display()))
            .collect();
        let pools: Vec<String> =
            chain.pools().map(|(pool, index)| format!("{pool}=gas-admin-{index}")).collect();
        let database = options.database.clone().unwrap_or_else(|| "sqlite://demo.db".to_owned());
        let given = [
            ("database", database),
            ("log", options.log.clone()),
            ("ledger.urls", chain.url().to_owned()),
            ("evm.chain_id", CHAIN_ID.to_owned()),
            ("evm.maximum_gas_price", CAP_GWEI.to_string()),
            ("evm.gas_admins", gas_admins.join(",")),
            ("evm.pools", pools.join(",")),
        ];
        let fixed = SETTINGS.iter().map(|(name, text)| (*name, (*text).to_owned()));
        let flag = |name: &str, text: String| {
            let setting = crate::Setting::named(name).ok_or_else(|| DemoError::internal(name))?;
            Ok([format!("--{}", setting.flag()), text])
        };
        let flags: Vec<[String; 2]> = given
            .into_iter()
            .chain(fixed)
            .map(|(name, text)| flag(name, text))
            .collect::<Result<_, DemoError>>()?;
        Ok(flags.into_iter().flatten().collect())
    }
}
