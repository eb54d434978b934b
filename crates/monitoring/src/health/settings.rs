use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_api::HealthPart;
use grid_batch_core::BatchResult;
use grid_batch_support::{Job, Jobs, Next, Schedule, lock};
use log::{info, warn};

use super::parts::{with_numbers, with_reasons};

/// The settings that must be equal on all instances and are not, in words. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct SettingDifferences(Arc<Mutex<Vec<String>>>);

/// Compares the settings of this instance with those that the others have recorded.
pub type CompareSettings = dyn Fn() -> BatchResult<Vec<String>> + Send + Sync;

impl SettingDifferences {
    const INTERVAL: Duration = Duration::from_secs(5);
    /// At most so many are shown.
    const SHOWN: usize = 5;

    /// Starts the job that compares.
    pub(super) fn watch(&self, compare: Arc<CompareSettings>, jobs: &Jobs) -> Job {
        let shared = self.clone();
        let schedule = Schedule::every(Self::INTERVAL).first_after(Duration::ZERO);
        jobs.repeat("health-settings", schedule, move || {
            // Other parts report that the database does not answer.
            if let Ok(differences) = compare() {
                shared.set(differences);
            }
            Ok(Next::AfterInterval)
        })
    }

    fn set(&self, differences: Vec<String>) {
        let mut known = lock(&self.0);
        for new in differences.iter().filter(|it| !known.contains(it)) {
            warn!(difference = new.as_str();
                "a setting must be equal on all instances, and is not: correct it, and restart the instance");
        }
        if differences.is_empty() && !known.is_empty() {
            info!("the settings that must be equal on all instances are equal again");
        }
        *known = differences;
    }

    pub(super) fn part(&self) -> HealthPart {
        let differences = lock(&self.0);
        let mut reasons: Vec<String> = differences.iter().take(Self::SHOWN).cloned().collect();
        match differences.len().saturating_sub(Self::SHOWN) {
            0 => {}
            more => reasons.push(format!("and {more} more; the log has all")),
        }
        let count = u64::try_from(differences.len()).unwrap_or(u64::MAX);
        with_numbers(with_reasons(&reasons), [("different", count)])
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_api::HealthStatus;

    use super::*;

    #[test]
    fn differences_are_shown_and_limited() {
        let settings = SettingDifferences::default();
        assert_eq!(settings.part().status, HealthStatus::Ok);
        settings.set((0..7).map(|number| format!("setting {number} differs")).collect());
        let part = settings.part();
        assert_eq!((part.status, part.numbers["different"]), (HealthStatus::Degraded, 7));
        let reason = part.reason.unwrap();
        assert!(
            reason.starts_with("setting 0 differs; ")
                && reason.ends_with("and 2 more; the log has all")
        );
    }
}
