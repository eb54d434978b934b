mod database;
mod gas;
pub(crate) mod parts;
pub(crate) mod services;
mod settings;

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use grid_batch_api::{HealthPart, HealthReport, HealthStatus};
use grid_batch_core::InternalError;
use grid_batch_core::queries::{BatchCounts, DiskSpace};
use grid_batch_support::{Job, Jobs};
use tokio::time::sleep;

use database::DatabaseHealth;
pub use parts::HealthSources;
pub use settings::CompareSettings;

use services::ServiceState;
use settings::SettingDifferences;

/// The present health. It is assembled from values in memory, so it can be read at any time. Clones share their state.
#[derive(Clone)]
pub struct Health(Arc<HealthState>);

struct HealthState {
    sources: HealthSources,
    database: DatabaseHealth,
    services: ServiceState,
    settings: SettingDifferences,
    /// The status of each part, and the time since which the part has it.
    since: Mutex<BTreeMap<&'static str, (HealthStatus, Instant)>>,
}

impl Health {
    /// How often the status of the parts is compared with the previous one, to know since when a part has it.
    const INTERVAL: Duration = Duration::from_millis(250);

    /// Starts the jobs that keep the health up to date. `probe` asks the database, and how much space it has, on a thread
    /// that is used for nothing else.
    pub fn start<E: Error>(
        sources: HealthSources,
        counts: Arc<dyn BatchCounts>,
        probe: impl FnMut() -> Result<Option<DiskSpace>, E> + Send + 'static,
        jobs: &Jobs,
    ) -> Result<(Self, [Job; 4]), InternalError> {
        let (database, services) = (DatabaseHealth::new(), ServiceState::new());
        let asking = database::watch(database.clone(), probe, jobs)?;
        let counting = services::watch(services.clone(), counts, jobs);
        let settings = SettingDifferences::default();
        let comparing = settings.watch(Arc::clone(&sources.settings), jobs);
        let since = Mutex::default();
        let health = Self(Arc::new(HealthState { sources, database, services, settings, since }));
        let observed = health.clone();
        let observing = jobs.spawn("health", async move {
            loop {
                sleep(Self::INTERVAL).await;
                observed.parts();
                observed.0.database.log_delay();
            }
        });
        Ok((health, [asking, counting, comparing, observing]))
    }

    /// The report. This does not block.
    pub fn report(&self) -> HealthReport {
        HealthReport::new(self.parts())
    }

    /// Whether the database answers.
    pub fn database_answers(&self) -> bool {
        parts::database_answers(&self.0.sources, &self.0.database)
    }

    /// Each node of the ledger, and whether it works.
    pub(crate) fn nodes(&self) -> BTreeMap<String, bool> {
        let pool = self.0.sources.ledger.pool();
        let mut nodes = BTreeMap::new();
        for node in pool.nodes() {
            *nodes.entry(node.name().to_owned()).or_default() |= pool.works(node);
        }
        nodes
    }

    fn parts(&self) -> BTreeMap<&'static str, HealthPart> {
        let HealthState { sources, database, services, .. } = &*self.0;
        let mut parts = parts::parts(sources, database, services);
        parts.insert("settings", self.0.settings.part());
        let (mut since, now) = (self.since(), Instant::now());
        for (name, part) in &mut parts {
            let known = since.entry(name).or_insert((part.status, now));
            if known.0 != part.status {
                *known = (part.status, now);
            }
            part.for_seconds = now.saturating_duration_since(known.1).as_secs_f64().round();
        }
        parts
    }

    fn since(&self) -> MutexGuard<'_, BTreeMap<&'static str, (HealthStatus, Instant)>> {
        self.0.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
