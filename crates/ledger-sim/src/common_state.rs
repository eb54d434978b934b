use std::{collections::HashMap, fmt, io, sync::Arc, time::Duration};

use grid_batch_core::{ItemId, ServiceId, Timestamp};
use grid_batch_protocol::{
    Batch, BatchList, Limits, ListError, Message, VerifiedBatch, list_of_one, verify_list,
};
use hyper::header::HeaderValue;
use tokio::sync::watch;

use crate::{
    Entry, ExecutionResult, Fault, SentTwice, events::Events, faults::Faults, random::Random,
    record::Record,
};

/// Returns the reason why an executed batch is invalid, or `None`.
pub(crate) type InvalidityRule = Arc<dyn Fn(&VerifiedBatch) -> Option<String> + Send + Sync>;

/// Returns the batch that must be applied before this one, or `None`.
pub(crate) type PredecessorRule = Arc<dyn Fn(&VerifiedBatch) -> Option<ItemId> + Send + Sync>;

/// The state that every kind of ledger has.
pub(crate) struct CommonState {
    pub(crate) settings: LedgerSettings,
    pub(crate) faults: Faults,
    pub(crate) record: Record,
    pub(crate) events: Events,
    /// Shuffles items that have no order. It is separate from the random numbers for faults, so that status requests do
    /// not change those.
    pub(crate) shuffle_random: Random,
    /// Chooses the order in which batches are executed if the ledger keeps none.
    pub(crate) order_random: Random,
    pub(crate) rule: Option<InvalidityRule>,
    pub(crate) predecessor: Option<PredecessorRule>,
    /// Whether a batch without a processor has stopped the node.
    pub(crate) stopped: watch::Sender<bool>,
    received: HashMap<ItemId, usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct LedgerSettings {
    pub(crate) pending_for: Duration,
    pub(crate) valid_for: Duration,
    pub(crate) coordinator_timeout: Duration,
    pub(crate) block_size: usize,
    pub(crate) block_interval: Duration,
    pub(crate) keeps_order: bool,
    pub(crate) back_pressure: bool,
    pub(crate) sent_twice: SentTwice,
}

impl CommonState {
    pub(crate) fn new(
        settings: LedgerSettings,
        faults: Faults,
        record: Record,
        rule: Option<InvalidityRule>,
        seed: u64,
    ) -> Self {
        let shuffle_random = Random::from_seed(!seed);
        let events = Events::from_record(&record);
        Self {
            settings,
            faults,
            record,
            events,
            shuffle_random,
            order_random: Random::from_seed(seed.rotate_left(32)),
            rule,
            predecessor: None,
            stopped: watch::Sender::new(false),
            received: HashMap::new(),
        }
    }

    /// Counts the batches of a request, regardless of its response.
    pub(crate) fn count_received(&mut self, list: &BatchList) {
        let ids = list.batches.iter().filter_map(|batch| batch.header_signature.parse().ok());
        for id in ids {
            *self.received.entry(id).or_default() += 1;
        }
    }

    /// The pause that [`Fault::BusyFor`] asks for, if it occurs.
    pub(crate) fn retry_after(&mut self) -> Option<HeaderValue> {
        let pause = self.faults.delay(Fault::BusyFor(Duration::ZERO));
        (!pause.is_zero()).then(|| HeaderValue::from(pause.as_secs()))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    pub(crate) fn times_received(&self, batch_id: &ItemId) -> usize {
        self.received.get(batch_id).copied().unwrap_or(0)
    }

    /// Executes a batch. Returns the reason if it is invalid.
    pub(crate) fn execute(&mut self, batch: &VerifiedBatch) -> Option<String> {
        if let Some(reason) = self.rule.as_ref().and_then(|rule| rule(batch)) {
            return Some(reason);
        }
        let is_invalid = self.faults.occurs(Fault::Invalid);
        is_invalid.then(|| "The simulated ledger finds this transaction invalid".to_owned())
    }

    pub(crate) fn record_result(
        &mut self,
        result: ExecutionResult,
        service_id: &ServiceId,
        batch: &VerifiedBatch,
        time: Timestamp,
        bytes: Option<Arc<[u8]>>,
    ) -> io::Result<()> {
        let entry = Self::entry(result, service_id, batch, time);
        self.record.append(Entry { batch: bytes, ..entry })
    }

    /// Records a batch that a fault or a rule has made invalid, regardless of its content.
    pub(crate) fn record_refused(
        &mut self,
        service_id: &ServiceId,
        batch: &VerifiedBatch,
        time: Timestamp,
    ) -> io::Result<()> {
        let entry = Self::entry(ExecutionResult::Invalid, service_id, batch, time);
        self.record.append(Entry { refused: true, ..entry })
    }

    /// An entry without its position.
    fn entry(
        result: ExecutionResult,
        service_id: &ServiceId,
        batch: &VerifiedBatch,
        time: Timestamp,
    ) -> Entry {
        Entry {
            position: 0,
            service_id: service_id.clone(),
            batch_id: batch.id(),
            transaction_ids: batch.transactions().iter().map(|t| t.id()).collect(),
            time,
            result,
            batch: None,
            refused: false,
        }
    }
}

impl fmt::Debug for CommonState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommonState").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Verifies each batch by itself, because ledgers accept a list that contains a batch twice.
pub(crate) fn verify(list: &BatchList) -> Result<Vec<VerifiedBatch>, ListError> {
    let limits = Limits { batches: 1, transactions: usize::MAX };
    let verify = |batch: &Batch| verify_list(&list_of_one(&batch.encode_to_vec()), &limits);
    let verified: Vec<_> = list.batches.iter().map(verify).collect::<Result<_, _>>()?;
    Ok(verified.into_iter().flatten().collect())
}
