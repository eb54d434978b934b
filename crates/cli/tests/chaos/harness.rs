use std::{
    fs, fs::Permissions, net::SocketAddr, os::unix::fs::PermissionsExt, path::PathBuf,
    process::Command, sync::Mutex, thread,
};

use grid_batch_core::ServiceScopeId;
use grid_batch_core::queue::StrategyKind;
use grid_batch_ledger_sim::{LedgerSim, LedgerSimBuilder, SentTwice};
use grid_batch_protocol::VerifiedBatch;
use grid_batch_test_postgres::RestartablePostgres;
use grid_batch_test_support::instance::InstanceSlot;
use tempfile::TempDir;

use crate::{GRID_BATCH, event_log::EventLog, parameters, settings, stop_signal::StopSignal};

/// What the threads of a run share: a ledger, a database, and slots in which instances run.
pub struct ChaosHarness {
    pub ledger: LedgerSim,
    /// The ledger of stray instances, which must receive nothing.
    pub other_ledger: LedgerSim,
    pub postgres: RestartablePostgres,
    pub services: Vec<String>,
    pub slots: Vec<InstanceSlot>,
    pub stray_slot: InstanceSlot,
    /// Where the instance of each slot takes batches, if one runs.
    pub addresses: Mutex<Vec<Option<SocketAddr>>>,
    pub events: EventLog,
    /// Stops the faults and the clients.
    pub stop_faults: StopSignal,
    /// Stops the operator, when every batch has ended.
    pub stop_operator: StopSignal,
    ledger_kind: &'static str,
    strategy: StrategyKind,
    directory: TempDir,
}

impl ChaosHarness {
    pub fn scabbard(services: usize, instances: usize, seed: u64) -> Self {
        let services: Vec<String> =
            (0..services).map(|number| format!("test-00000::s{number:04}")).collect();
        let scopes = services.iter().map(|service| service.parse::<ServiceScopeId>().unwrap());
        let ledger = LedgerSim::scabbard(scopes);
        Self::new("scabbard", ledger, StrategyKind::Serial, services, instances, seed)
    }

    pub fn sawtooth(strategy: StrategyKind, instances: usize, seed: u64) -> Self {
        let services = vec!["global".to_owned()];
        Self::new("sawtooth", LedgerSim::sawtooth(), strategy, services, instances, seed)
    }

    fn new(
        ledger_kind: &'static str,
        ledger: LedgerSimBuilder,
        strategy: StrategyKind,
        services: Vec<String>,
        instances: usize,
        seed: u64,
    ) -> Self {
        let directory = tempfile::Builder::new().prefix("grid-batch-chaos-").tempdir().unwrap();
        let key = directory.path().join("key");
        fs::write(&key, "07".repeat(32)).unwrap();
        fs::set_permissions(key, Permissions::from_mode(0o600)).unwrap();
        let ledger = ledger
            .seed(seed)
            .pending_for(settings::PENDING_FOR)
            .valid_for(settings::VALID_FOR)
            .coordinator_timeout(settings::COORDINATOR_TIMEOUT)
            .refuse(refusal_of)
            .sent_twice(SentTwice::StuckValid);
        let slot = |name: String| InstanceSlot {
            log: directory.path().join(&name).with_extension("log"),
            name,
        };
        let slots = (1..=instances).map(|number| slot(format!("instance-{number}")));
        Self {
            ledger: ledger.start().unwrap(),
            other_ledger: LedgerSim::sawtooth().seed(seed.wrapping_add(1)).start().unwrap(),
            postgres: RestartablePostgres::start(instances * settings::CONNECTIONS),
            services,
            slots: slots.collect(),
            stray_slot: slot("stray".to_owned()),
            addresses: Mutex::new(vec![None; instances]),
            events: EventLog::new(),
            stop_faults: StopSignal::default(),
            stop_operator: StopSignal::default(),
            ledger_kind,
            strategy,
            directory,
        }
    }

    /// The command `serve` of an instance.
    pub fn command(&self) -> Command {
        let command = GRID_BATCH.command(["serve"]);
        self.configure(command, "SERVICES_STRATEGY", settings::TESTING)
    }

    /// The command of the first instance of a slot, which may be of an earlier release.
    pub fn first_command(&self) -> Command {
        let Some(program) = parameters::upgraded_program() else { return self.command() };
        let mut command = Command::new(program);
        command.arg("serve").env_clear();
        self.configure(command, "LEDGER_STRATEGY", settings::TESTING_BEFORE)
    }

    fn configure(
        &self,
        mut command: Command,
        strategy: &'static str,
        testing: &[(&'static str, &str)],
    ) -> Command {
        let per_run = [
            ("DATABASE", self.postgres.url()),
            ("LEDGER_KIND", self.ledger_kind.to_owned()),
            ("LEDGER_NAME", "chaos".to_owned()),
            ("LEDGER_URLS", self.ledger.url()),
            (strategy, self.strategy.as_str().to_owned()),
            ("LEDGER_KEY_FILE", self.directory.path().join("key").display().to_string()),
            ("LEDGER_EVENT_SOCKETS", self.services.len().to_string()),
        ];
        let fixed = settings::SETTINGS.iter().chain(testing);
        let fixed = fixed.map(|(name, value)| (*name, (*value).to_owned()));
        let all = per_run.into_iter().chain(fixed);
        command
            .current_dir(self.directory.path())
            .envs(all.map(|(name, value)| (format!("GRID_BATCH_{name}"), value)));
        command
    }

    pub fn is_sawtooth(&self) -> bool {
        self.ledger_kind == "sawtooth"
    }

    /// Whether several batches of a service are under way.
    pub fn is_parallel(&self) -> bool {
        self.strategy == StrategyKind::Parallel
    }

    /// The command `serve` of an instance with the same database and another ledger.
    pub fn stray_command(&self) -> Command {
        let mut command = self.command();
        command
            .env("GRID_BATCH_LEDGER_KIND", "sawtooth")
            .env("GRID_BATCH_LEDGER_URLS", self.other_ledger.url());
        command
    }

    /// The log of each slot.
    pub fn logs(&self) -> impl Iterator<Item = (&InstanceSlot, String)> {
        self.slots.iter().enumerate().map(|(number, slot)| (slot, self.log_of(number)))
    }

    /// What the instances of a slot have logged.
    pub fn log_of(&self, slot: usize) -> String {
        fs::read_to_string(&self.slots[slot].log).unwrap_or_default()
    }

    /// The directory of the logs.
    pub fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }
}

/// The ledger refuses one batch in 64. A refused batch is refused each time it is sent: if this were
/// random, the batch might be applied when it is sent again.
fn refusal_of(batch: &VerifiedBatch) -> Option<String> {
    (batch.id().as_bytes()[0] < 4).then(|| "this batch is refused".to_owned())
}

impl Drop for ChaosHarness {
    fn drop(&mut self) {
        if thread::panicking() {
            self.directory.disable_cleanup(true);
            eprintln!("the logs of the instances are kept in {}", self.directory.path().display());
        }
    }
}
