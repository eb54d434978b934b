use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use grid_batch_core::{BatchConflict, Clock, HeaderId, NewBatch, SignerId};

use super::waited_for::limit_of;
use crate::{
    scheduling::{count_missing_of_signers, find_missing_of_new},
    sql::{Connection, Store, StoreError, open_counts::OpenCounts},
};

/// How many more missing transactions the batches of signers may depend on: such batches may wait for long,
/// and no signer may fill a queue with them. Database transactions that add batches at once do not see each
/// other's, so a signer may exceed its limit by these.
pub(super) struct MissingCapacity<'a> {
    limit: u64,
    counts: &'a OpenCounts<SignerId>,
    signers: BTreeMap<SignerId, Missing>,
    /// The transactions that each of the new batches misses and that no other new batch has.
    missing: HashMap<(&'a str, HeaderId), Vec<HeaderId>>,
    /// The transactions of the new batches that miss nothing and will be stored.
    arriving: HashSet<HeaderId>,
}

#[derive(Default)]
struct Missing {
    known: u64,
    added: u64,
}

impl<'a> MissingCapacity<'a> {
    /// Reads what the batches miss, and counts what the batches of their signers miss already.
    pub(super) fn read(
        store: &'a Store,
        connection: &mut Connection,
        batches: &[&'a NewBatch],
    ) -> Result<Self, StoreError> {
        let limit = store.intake_limits.missing_transactions_of_signer;
        let counts = &*store.missing_of_signers;
        let missing = match limit != u64::MAX && store.scheduler.is_used() {
            true => find_missing_of_new(connection, batches)?,
            false => HashMap::new(),
        };
        let missing: HashMap<(&'a str, HeaderId), Vec<HeaderId>> = missing
            .into_iter()
            .filter_map(|(number, missing)| Some((key(batches.get(number)?), missing)))
            .collect();
        let mut new: BTreeMap<SignerId, u64> = BTreeMap::new();
        for batch in batches {
            if let (Some(signer), Some(missing)) = (batch.signer, missing.get(&key(batch))) {
                *new.entry(signer).or_default() += missing.len() as u64;
            }
        }
        let now = store.clock().monotonic();
        let must_be_counted =
            |(signer, new): &(&SignerId, &u64)| counts.must_be_counted(signer, **new, limit, now);
        let to_count: BTreeSet<SignerId> =
            new.iter().filter(must_be_counted).map(|(signer, _)| *signer).collect();
        for (signer, missing) in count_missing_of_signers(connection, &to_count)? {
            counts.counted(signer, missing, now);
        }
        let known = |signer: SignerId| Missing { known: counts.open(&signer), added: 0 };
        let signers = new.into_keys().map(|signer| (signer, known(signer))).collect();
        Ok(Self { limit, counts, signers, missing, arriving: HashSet::new() })
    }

    /// Whether a signer may reach its limit.
    pub(super) fn may_be_full(&self) -> bool {
        let new = self.missing.values().map(|missing| missing.len() as u64).sum::<u64>();
        self.signers.values().any(|it| it.known.saturating_add(new) > self.limit)
    }

    /// Counts a batch that will be stored, if it may be. The first one of a signer may miss any number.
    pub(super) fn take(
        &mut self,
        batch: &'a NewBatch,
        is_waited_for: bool,
    ) -> Result<(), BatchConflict> {
        let missing = self.missing_of(batch);
        if missing == 0 {
            self.arriving.extend(&batch.transaction_ids);
            return Ok(());
        }
        let limit = limit_of(self.limit, is_waited_for);
        let Some(signer) = batch.signer else { return Ok(()) };
        let Some(of_signer) = self.signers.get_mut(&signer) else { return Ok(()) };
        let present = of_signer.known.saturating_add(of_signer.added);
        if present > 0 && present.saturating_add(missing) > limit {
            let (signer, limit) = (Box::new(signer), self.limit);
            return Err(BatchConflict::TooManyMissing { signer, missing: present, limit });
        }
        of_signer.added += missing;
        Ok(())
    }

    /// Takes back what [`take`](Self::take) counted for the latest batch.
    pub(super) fn give_back(&mut self, batch: &'a NewBatch) {
        let missing = self.missing_of(batch);
        if missing == 0 {
            batch.transaction_ids.iter().for_each(|id| {
                self.arriving.remove(id);
            });
        } else if let Some(signer) = batch.signer
            && let Some(of_signer) = self.signers.get_mut(&signer)
        {
            of_signer.added = of_signer.added.saturating_sub(missing);
        }
    }

    /// Remembers what was added. If the database transaction fails, the next count corrects it.
    pub(super) fn keep(self) {
        for (signer, missing) in &self.signers {
            self.counts.added(signer, missing.added);
        }
    }

    fn missing_of(&self, batch: &'a NewBatch) -> u64 {
        let missing = self.missing.get(&key(batch)).map_or(&[][..], Vec::as_slice);
        missing.iter().filter(|id| !self.arriving.contains(id)).count() as u64
    }
}

fn key(batch: &NewBatch) -> (&str, HeaderId) {
    (batch.service_id.as_str(), batch.batch_id)
}
