use std::{
    env, fs, fs::Permissions, net::SocketAddr, os::unix::fs::PermissionsExt, path::PathBuf,
    process::Command, sync::Mutex, thread,
};

use grid_batch_core::ServiceScopeId;
use grid_batch_ledger_sim::{LedgerSim, LedgerSimBuilder, SentTwice};
use grid_batch_protocol::VerifiedBatch;
use tempfile::TempDir;

use crate::{curfew::Curfew, diary::Diary, instance::Place, server::Server, settings};

/// What all take part in: a ledger, a database, and places where instances run.
pub struct Bench {
    pub ledger: LedgerSim,
    pub server: Server,
    pub services: Vec<String>,
    pub places: Vec<Place>,
    /// Where batches can be handed in, perhaps: one a place.
    pub addresses: Mutex<Vec<Option<SocketAddr>>>,
    pub diary: Diary,
    /// The end of all trouble.
    pub trouble: Curfew,
    /// The end of everything.
    pub everything: Curfew,
    kind: &'static str,
    dir: TempDir,
}

impl Bench {
    pub fn scabbard(services: usize, instances: usize, seed: u64) -> Self {
        let services: Vec<String> =
            (0..services).map(|number| format!("test-00000::s{number:04}")).collect();
        let scopes = services.iter().map(|service| service.parse::<ServiceScopeId>().unwrap());
        let ledger = LedgerSim::scabbard(scopes);
        Self::new("scabbard", services, instances, ledger.seed(seed))
    }

    pub fn sawtooth(instances: usize, seed: u64) -> Self {
        let services = vec!["global".to_owned()];
        Self::new("sawtooth", services, instances, LedgerSim::sawtooth().seed(seed))
    }

    fn new(
        kind: &'static str,
        services: Vec<String>,
        instances: usize,
        ledger: LedgerSimBuilder,
    ) -> Self {
        let dir = tempfile::Builder::new().prefix("grid-batch-torture-").tempdir().unwrap();
        let key = dir.path().join("key");
        fs::write(&key, "07".repeat(32)).unwrap();
        fs::set_permissions(key, Permissions::from_mode(0o600)).unwrap();
        let ledger = ledger
            .pending_for(settings::PENDING_FOR)
            .valid_for(settings::VALID_FOR)
            .coordinator_timeout(settings::COORDINATOR_TIMEOUT)
            .refuse(is_refused)
            .sent_twice(SentTwice::StuckValid);
        let places = (1..=instances).map(|number| {
            let name = format!("instance-{number}");
            Place { log: dir.path().join(&name).with_extension("log"), name }
        });
        Self {
            ledger: ledger.start().unwrap(),
            server: Server::start(instances * settings::CONNECTIONS),
            services,
            places: places.collect(),
            addresses: Mutex::new(vec![None; instances]),
            diary: Diary::new(),
            trouble: Curfew::default(),
            everything: Curfew::default(),
            kind,
            dir,
        }
    }

    /// An instance, not yet started.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grid-batch"));
        let given = [
            ("DATABASE", self.server.url()),
            ("LEDGER_KIND", self.kind.to_owned()),
            ("LEDGER_URLS", self.ledger.url()),
            ("LEDGER_KEY_FILE", self.dir.path().join("key").display().to_string()),
            ("LEDGER_EVENT_SOCKETS", self.services.len().to_string()),
        ];
        let fixed = settings::SETTINGS.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let all = given.into_iter().chain(fixed);
        command
            .arg("serve")
            .current_dir(self.dir.path())
            .env_clear()
            .envs(all.map(|(name, value)| (format!("GRID_BATCH_{name}"), value)));
        command
    }

    pub fn logs(&self) -> impl Iterator<Item = (&Place, String)> {
        self.places.iter().map(|place| (place, fs::read_to_string(&place.log).unwrap_or_default()))
    }

    /// Where everybody's logs are.
    pub fn path(&self) -> PathBuf {
        self.dir.path().to_owned()
    }
}

/// One batch in sixty-four, and that one whenever it is sent: a batch that is refused only now and
/// then may be applied when it comes once more.
fn is_refused(batch: &VerifiedBatch) -> Option<String> {
    (batch.id().as_bytes()[0] < 4).then(|| "this batch is refused".to_owned())
}

impl Drop for Bench {
    fn drop(&mut self) {
        if thread::panicking() {
            self.dir.disable_cleanup(true);
            eprintln!("what the instances said is kept in {}", self.dir.path().display());
        }
    }
}
