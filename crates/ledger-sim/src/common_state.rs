use std::{collections::HashMap, fmt, io, sync::Arc, time::Duration};

use grid_batch_core::{HeaderId, ServiceId, Timestamp};
use grid_batch_protocol::{
    Batch, BatchList, Limits, ListError, Message, VerifiedBatch, list_of_one, verify_list,
};

use crate::{
    Entry, Fault, SentTwice, Verdict, chance::Chance, events::Events, faults::Faults,
    record::Record,
};

/// Says of a batch that is executed why it is invalid, if it is.
pub(crate) type Rule = Arc<dyn Fn(&VerifiedBatch) -> Option<String> + Send + Sync>;

/// What does not depend on the kind of ledger.
pub(crate) struct Common {
    pub(crate) settings: Settings,
    pub(crate) faults: Faults,
    pub(crate) record: Record,
    pub(crate) events: Events,
    /// For what has no order, apart from the faults, so that polling does not change these.
    pub(crate) disorder: Chance,
    pub(crate) rule: Option<Rule>,
    received: HashMap<HeaderId, usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) pending_for: Duration,
    pub(crate) valid_for: Duration,
    pub(crate) coordinator_timeout: Duration,
    pub(crate) block_size: usize,
    pub(crate) back_pressure: bool,
    pub(crate) sent_twice: SentTwice,
}

impl Common {
    pub(crate) fn new(
        settings: Settings,
        faults: Faults,
        record: Record,
        rule: Option<Rule>,
        seed: u64,
    ) -> Self {
        let disorder = Chance::from_seed(!seed);
        let events = Events::from_record(&record);
        Self { settings, faults, record, events, disorder, rule, received: HashMap::new() }
    }

    /// Counts what was sent, whatever becomes of it.
    pub(crate) fn note_received(&mut self, list: &BatchList) {
        let ids = list.batches.iter().filter_map(|batch| batch.header_signature.parse().ok());
        for id in ids {
            *self.received.entry(id).or_default() += 1;
        }
    }

    pub(crate) fn times_received(&self, batch_id: &HeaderId) -> usize {
        self.received.get(batch_id).copied().unwrap_or(0)
    }

    /// Executes a batch: why it is invalid, if it is.
    pub(crate) fn execute(&mut self, batch: &VerifiedBatch) -> Option<String> {
        if let Some(reason) = self.rule.as_ref().and_then(|rule| rule(batch)) {
            return Some(reason);
        }
        let refused = self.faults.strikes(Fault::Invalid);
        refused.then(|| "The simulated ledger finds this transaction invalid".to_owned())
    }

    pub(crate) fn note(
        &mut self,
        verdict: Verdict,
        service_id: &ServiceId,
        batch: &VerifiedBatch,
        time: Timestamp,
        bytes: Option<Arc<[u8]>>,
    ) -> io::Result<()> {
        self.record.append(Entry {
            position: 0,
            service_id: service_id.clone(),
            batch_id: batch.id(),
            transaction_ids: batch.transactions().iter().map(|t| t.id()).collect(),
            time,
            verdict,
            batch: bytes,
        })
    }
}

impl fmt::Debug for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Common").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Checks each batch by itself, because ledgers take a list that has the same batch twice.
pub(crate) fn verify(list: &BatchList) -> Result<Vec<VerifiedBatch>, ListError> {
    let limits = Limits { batches: 1, transactions: usize::MAX };
    let verify = |batch: &Batch| verify_list(&list_of_one(&batch.encode_to_vec()), &limits);
    let verified: Vec<_> = list.batches.iter().map(verify).collect::<Result<_, _>>()?;
    Ok(verified.into_iter().flatten().collect())
}
