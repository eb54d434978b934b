use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use grid_batch_core::claims::InstanceId;
use grid_batch_core::ledger::LedgerIdentity;

use super::{Store, error::ClaimError, file_lock::FileLock};

/// The store as used by one instance, which works only on the services that it claims.
///
/// A claim lasts while the instance renews its lease, by the database's clock. A takeover raises the epoch of the
/// service, and later writes of the previous owner change nothing. Clones belong to the same instance.
///
/// ```no_run
/// use grid_batch_core::{claims::ClaimKeeper, queue::RoundStore};
/// use grid_batch_store::{ClaimOptions, ClaimStore, Store};
///
/// # fn example(store: Store) -> Result<(), Box<dyn std::error::Error>> {
/// let claims = ClaimStore::register(store, ClaimOptions::default())?;
/// // Several times within the idle expiry:
/// if !claims.renew()? {
///     claims.register_again()?;
/// }
/// let takeover = claims.take(10_000)?;
/// println!("took {} services, {} batches in doubt", takeover.claims.len(), takeover.in_doubt.len());
///
/// for taken in claims.take_next(&claims.ready_services(None, 100)?)? {
///     // ... POST taken.serialized_batch ...
/// }
/// // At the end:
/// claims.release()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ClaimStore {
    pub(crate) store: Store,
    pub(crate) options: Arc<ClaimOptions>,
    pub(crate) instance: Arc<RwLock<InstanceId>>,
    /// The ledger that the instance has confirmed.
    pub(crate) ledger: Arc<RwLock<Option<LedgerIdentity>>>,
    pub(crate) file_lock: Option<Arc<FileLock>>,
    /// Whether an operator drains the instance, as of the last renewal.
    pub(crate) draining: Arc<AtomicBool>,
}

impl ClaimStore {
    /// The id of the instance, which is different in each run.
    pub fn instance(&self) -> InstanceId {
        self.instance.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The store, with the services of all instances.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Whether an operator drains the instance, as of the last renewal.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }
}

impl fmt::Debug for ClaimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimStore")
            .field("instance", &self.instance())
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// How an instance claims services.
///
/// ```
/// use std::time::Duration;
/// use grid_batch_store::ClaimOptions;
///
/// // With equal expiries, an instance that has not renewed its lease for five minutes loses all
/// // its services at once.
/// let lease = Duration::from_secs(300);
/// let options =
///     ClaimOptions { idle_expiry: lease, full_expiry: lease, ..ClaimOptions::default() };
/// assert!(options.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimOptions {
    /// A unique name that identifies the instance across restarts. Without a name, the services of a crashed instance
    /// stay claimed until the expiries.
    ///
    /// As soon as the idle expiry of an earlier run with the same name has passed, a new run takes over its services,
    /// even those with a batch with a submitter. The earlier run must therefore have ended.
    pub name: Option<String>,
    /// After this time without a renewal, other instances may take services without a batch with a
    /// submitter (column `expiry_1`).
    pub idle_expiry: Duration,
    /// After this time without a renewal, other instances may take all services (column `expiry_2`).
    pub full_expiry: Duration,
    /// The longest time between taking a batch and the end of its submission, including its wait in
    /// the queue and all retries.
    pub longest_submission: Duration,
    /// Limit on the number of services that change their owner in one commit.
    pub step: usize,
    /// Whether to take at most a fair share of all services and release the surplus.
    pub fair_share: bool,
    /// The settings of the program that must be equal on all instances, in a form of its own
    /// ([`Store::settings_of_instances`]).
    pub settings: Option<String>,
}

impl Default for ClaimOptions {
    fn default() -> Self {
        Self {
            name: None,
            idle_expiry: Duration::from_secs(30),
            full_expiry: Duration::from_secs(180),
            longest_submission: Duration::from_secs(120),
            step: 500,
            fair_share: false,
            settings: None,
        }
    }
}

impl ClaimOptions {
    /// Checks that no other instance can take over a service during a submission.
    ///
    /// A batch that is taken before the idle expiry must have been sent by the full expiry. If the expiries are equal,
    /// batches are taken only while enough time is left.
    pub fn check(&self) -> Result<(), ClaimError> {
        let Self { idle_expiry, full_expiry, longest_submission, .. } = *self;
        let Some(between) = full_expiry.checked_sub(idle_expiry) else {
            return Err(ClaimError::Reversed { idle_expiry, full_expiry });
        };
        let is_enough = if between.is_zero() {
            full_expiry > longest_submission
        } else {
            between >= longest_submission
        };
        if is_enough {
            Ok(())
        } else {
            Err(ClaimError::SubmissionTooLong { idle_expiry, full_expiry, longest_submission })
        }
    }

    pub(crate) fn step(&self) -> usize {
        self.step.max(1)
    }
}

/// A duration as the databases store it, limited to a century so that no sum overflows.
pub(crate) fn micros(duration: Duration) -> i64 {
    const CENTURY: i64 = 100 * 365 * 24 * 60 * 60 * 1_000_000;
    i64::try_from(duration.as_micros()).unwrap_or(CENTURY).min(CENTURY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(idle: u64, full: u64, longest_submission: u64) -> Result<(), ClaimError> {
        let [idle_expiry, full_expiry, longest_submission] =
            [idle, full, longest_submission].map(Duration::from_secs);
        ClaimOptions { idle_expiry, full_expiry, longest_submission, ..ClaimOptions::default() }
            .check()
    }

    #[test]
    fn default_is_valid() {
        assert_eq!(ClaimOptions::default().check(), Ok(()));
    }

    #[test]
    fn submission_must_fit_between_the_expiries() {
        assert_eq!(check(30, 90, 60), Ok(()));
        let error = check(30, 89, 60).unwrap_err();
        assert!(matches!(error, ClaimError::SubmissionTooLong { .. }));
        assert_eq!(
            error.to_string(),
            "a submission may take 60s, but claims expire after 30s (idle) and 89s (full); a whole \
             submission must fit between the two expiries, or into the expiry if both are equal"
        );
    }

    #[test]
    fn equal_expiries_must_outlast_a_submission() {
        assert_eq!(check(61, 61, 60), Ok(()));
        assert!(matches!(check(60, 60, 60), Err(ClaimError::SubmissionTooLong { .. })));
    }

    #[test]
    fn full_expiry_must_not_be_before_idle_expiry() {
        assert!(matches!(check(31, 30, 0), Err(ClaimError::Reversed { .. })));
    }
}
