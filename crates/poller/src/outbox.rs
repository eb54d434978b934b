use std::{mem::take, slice};

use grid_batch_core::{BatchError, BatchId, BatchResult, BatchStatus, Resolution, UnresolvedBatch};
use log::error;

use crate::{MonitorCounters, records::Records, stats::count};

/// What is to be written, together.
///
/// It stays here while the store cannot be reached. It cannot grow without bound: meanwhile the
/// monitor does not look for anything to ask.
#[derive(Debug)]
pub(crate) struct Outbox<I, T> {
    groups: Vec<(String, Vec<T>)>,
    /// The batches that each of the groups is about.
    batches: Vec<Vec<I>>,
    checked: Vec<I>,
    resolutions: Vec<(UnresolvedBatch, Resolution)>,
}

impl<I: BatchId, T: BatchStatus> Outbox<I, T> {
    pub(crate) fn new() -> Self {
        Self {
            groups: Vec::new(),
            batches: Vec::new(),
            checked: Vec::new(),
            resolutions: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.checked.is_empty() && self.resolutions.is_empty()
    }

    /// To be written: the statuses of these batches of one service.
    pub(crate) fn update(&mut self, service_id: String, batches: Vec<I>, statuses: Vec<T>) {
        if !statuses.is_empty() {
            self.groups.push((service_id, statuses));
            self.batches.push(batches);
        }
    }

    /// To be noted: these were asked for, and there is nothing new.
    pub(crate) fn mark_checked(&mut self, batches: impl IntoIterator<Item = I>) {
        self.checked.extend(batches);
    }

    pub(crate) fn settle(&mut self, doubt: UnresolvedBatch, resolution: Resolution) {
        self.resolutions.push((doubt, resolution));
    }

    /// Writes all of it. On an error, what was not written stays.
    pub(crate) fn write(&mut self, records: &Records<I, T>) -> BatchResult<()> {
        self.write_groups(records)?;
        self.write_checked(records)?;
        self.write_verdicts(records)
    }

    fn write_groups(&mut self, records: &Records<I, T>) -> BatchResult<()> {
        if self.groups.is_empty() {
            return Ok(());
        }
        match records.update_groups(&self.groups) {
            Ok(()) => self.forget_groups(&records.counters),
            Err(error @ BatchError::Unavailable(_)) => return Err(error),
            // One group that the store refuses must not keep the others from being written.
            Err(_) => self.write_each_group(records)?,
        }
        Ok(())
    }

    fn forget_groups(&mut self, counters: &MonitorCounters) {
        self.batches.clear();
        let written = self.groups.drain(..).map(|(_, statuses)| statuses.len()).sum();
        counters.count(|stats| stats.written += count(written));
    }

    fn write_each_group(&mut self, records: &Records<I, T>) -> BatchResult<()> {
        while let (Some((service_id, statuses)), Some(batches)) =
            (self.groups.first(), self.batches.first_mut())
        {
            match records.update(service_id, statuses) {
                Ok(()) => records.counters.count(|stats| stats.written += count(statuses.len())),
                Err(error @ BatchError::Unavailable(_)) => return Err(error),
                Err(error) => {
                    records.counters.count(|stats| stats.refused += 1);
                    error!(
                        service = service_id.as_str(), statuses = statuses.len(), error:% = error;
                        "the store refuses statuses; the ledger is asked again later"
                    );
                    self.checked.append(batches);
                }
            }
            self.groups.remove(0);
            self.batches.remove(0);
        }
        Ok(())
    }

    fn write_checked(&mut self, records: &Records<I, T>) -> BatchResult<()> {
        if self.checked.is_empty() {
            return Ok(());
        }
        let result = records.mark_checked(&self.checked);
        if !matches!(result, Err(BatchError::Unavailable(_))) {
            self.checked.clear();
        }
        result
    }

    fn write_verdicts(&mut self, records: &Records<I, T>) -> BatchResult<()> {
        if self.resolutions.is_empty() {
            return Ok(());
        }
        match records.resolve(&self.resolutions) {
            Ok(()) => self.resolutions.clear(),
            Err(error @ BatchError::Unavailable(_)) => return Err(error),
            Err(_) => self.write_each_verdict(records)?,
        }
        Ok(())
    }

    fn write_each_verdict(&mut self, records: &Records<I, T>) -> BatchResult<()> {
        while let Some(resolution) = self.resolutions.first() {
            match records.resolve(slice::from_ref(resolution)) {
                Ok(()) => {}
                Err(error @ BatchError::Unavailable(_)) => return Err(error),
                Err(error) => {
                    records.counters.count(|stats| stats.refused += 1);
                    let UnresolvedBatch { service_id, batch_id, .. } = &resolution.0;
                    error!(
                        service:% = service_id, batch:% = batch_id, error:% = error;
                        "the store refuses a resolution; evidence is looked for again later"
                    );
                }
            }
            self.resolutions.remove(0);
        }
        Ok(())
    }

    /// Gives up on what could not be written, and says how much that is.
    pub(crate) fn give_up(&mut self) -> usize {
        let answers = take(&mut self.groups).into_iter().map(|(_, statuses)| statuses.len());
        answers.sum::<usize>() + take(&mut self.resolutions).len()
    }
}
