use std::collections::{BTreeMap, BTreeSet, HashMap};

use grid_batch_core::batches::{BatchConflict, NewBatch, SignerId};

use super::CreatedAtAllocator;
use crate::{
    missing::limit_of,
    sql::{Connection, Rows, StoreError, intake_limits::IntakeLimits},
};

/// How much may still be added to the services of some batches. The locks of the services ensure that the numbers of
/// open batches remain true until the end of the transaction.
pub(crate) struct Capacity<'a> {
    limits: IntakeLimits,
    services: HashMap<&'a str, ServiceCount>,
    new_services: NewServiceCounts,
}

struct ServiceCount {
    open: u64,
    /// Whether no batch was ever added to it.
    is_new: bool,
}

impl<'a> Capacity<'a> {
    /// Reads what is needed to check the limits. For services that are neither new nor near their limit, nothing is
    /// read.
    pub(super) fn read(
        connection: &mut Connection,
        batches: &[&'a NewBatch],
        reserved: &CreatedAtAllocator<'a>,
        limits: IntakeLimits,
    ) -> Result<Self, StoreError> {
        let added: BTreeMap<&'a str, u64> = reserved.added_before().collect();
        let new = batches.len() as u64;
        let may_be_full = |added: u64| added.saturating_add(new) > limits.open_batches;
        let full: Vec<&str> =
            added.iter().filter(|(_, added)| may_be_full(**added)).map(|(id, _)| *id).collect();
        let ended = count_ended(connection, &full)?;
        let new_services = count_new_services(connection, batches, &added, limits)?;
        Ok(Self { limits, services: service_counts(added, &ended), new_services })
    }

    /// Reads the number of open batches of each service. New services are not limited.
    pub(crate) fn read_open(
        connection: &mut Connection,
        reserved: &CreatedAtAllocator<'a>,
        limits: IntakeLimits,
    ) -> Result<Self, StoreError> {
        let added: BTreeMap<&'a str, u64> = reserved.added_before().collect();
        let ended = count_ended(connection, &Vec::from_iter(added.keys().copied()))?;
        let services = service_counts(added, &ended);
        Ok(Self { limits, services, new_services: NewServiceCounts::default() })
    }

    /// The number of open batches of a service, including those that were counted with `take`.
    pub(crate) fn open(&self, service_id: &str) -> u64 {
        self.services.get(service_id).map_or(0, |service| service.open)
    }

    /// Whether a service may reach its limit of open batches.
    pub(super) fn may_be_full(&self, batches: usize) -> bool {
        let limit = self.limits.open_batches;
        self.services.values().any(|it| it.open.saturating_add(batches as u64) > limit)
    }

    /// Counts a batch that will be stored, if the limits allow it.
    pub(crate) fn take(
        &mut self,
        batch: &NewBatch,
        is_waited_for: bool,
    ) -> Result<(), BatchConflict> {
        let Some(service) = self.services.get_mut(batch.service_id.as_str()) else { return Ok(()) };
        let (open, limit) = (service.open, self.limits.open_batches);
        if open >= limit_of(limit, is_waited_for) {
            let service_id = batch.service_id.clone();
            return Err(BatchConflict::QueueFull { service_id, open, limit });
        }
        if let (true, 0, Some(signer)) = (service.is_new, open, batch.signer) {
            count_opened(&mut self.new_services, self.limits, batch, signer)?;
        }
        service.open += 1;
        Ok(())
    }

    /// Reverts what [`take`](Self::take) counted for the latest batch of a service.
    pub(super) fn give_back(&mut self, batch: &NewBatch) {
        let Some(service) = self.services.get_mut(batch.service_id.as_str()) else { return };
        service.open -= 1;
        if let (true, 0, Some(signer)) = (service.is_new, service.open, batch.signer) {
            if let Some(of_signer) = self.new_services.of_signers.get_mut(&signer) {
                *of_signer -= 1;
            }
            self.new_services.in_all -= 1;
        }
    }
}

fn service_counts<'a>(
    added: BTreeMap<&'a str, u64>,
    ended: &HashMap<String, u64>,
) -> HashMap<&'a str, ServiceCount> {
    added
        .into_iter()
        .map(|(service, added)| {
            let open = added.saturating_sub(ended.get(service).copied().unwrap_or(0));
            (service, ServiceCount { open, is_new: added == 0 })
        })
        .collect()
}

/// Counts a service that a batch opens, if its signer may open it.
fn count_opened(
    counts: &mut NewServiceCounts,
    limits: IntakeLimits,
    batch: &NewBatch,
    signer: SignerId,
) -> Result<(), BatchConflict> {
    let service_id = || batch.service_id.clone();
    let of_signer = counts.of_signers.entry(signer).or_default();
    if counts.in_all >= limits.new_services && *of_signer < limits.new_services_per_signer {
        let (service_id, limit) = (service_id(), limits.new_services);
        return Err(BatchConflict::TooManyNewServices { service_id, limit });
    }
    let limit = share_of_signer(limits, counts.in_all.saturating_sub(*of_signer));
    if *of_signer >= limit {
        let (service_id, signer) = (service_id(), Box::new(signer));
        return Err(BatchConflict::TooManyServicesOfSigner { service_id, signer, limit });
    }
    *of_signer += 1;
    counts.in_all += 1;
    Ok(())
}

/// How many new services a signer may have opened: the same fraction of what others have left as of the total. Some
/// thus remain for others, even if someone invents keys.
fn share_of_signer(limits: IntakeLimits, of_others: u64) -> u64 {
    let (of_signer, in_all) = (limits.new_services_per_signer, limits.new_services);
    if in_all == u64::MAX || of_signer >= in_all {
        return of_signer;
    }
    let left = u128::from(in_all.saturating_sub(of_others));
    let share = (left * u128::from(of_signer)).div_ceil(u128::from(in_all));
    u64::try_from(share).unwrap_or(of_signer)
}

/// The number of batches that have ended, of each service.
fn count_ended(
    connection: &mut Connection,
    services: &[&str],
) -> Result<HashMap<String, u64>, StoreError> {
    if services.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(String, i64)> = connection.load_row_tuples(
        "-- count_ended_of_lanes
         select s.service_id, s.ended from {x} join lanes s on s.service_id = x.service_id",
        Rows::default().text("service_id", services.iter().copied()),
    )?;
    let mut ended: HashMap<String, u64> = HashMap::new();
    for (service, count) in rows {
        *ended.entry(service).or_default() += u64::try_from(count).map_err(StoreError::corrupt)?;
    }
    Ok(ended)
}

/// The numbers of new services, if one of the batches would open a service and they are limited.
fn count_new_services(
    connection: &mut Connection,
    batches: &[&NewBatch],
    added: &BTreeMap<&str, u64>,
    limits: IntakeLimits,
) -> Result<NewServiceCounts, StoreError> {
    let opens = |batch: &&&NewBatch| added.get(batch.service_id.as_str()) == Some(&0);
    let signers: BTreeSet<SignerId> =
        batches.iter().filter(opens).filter_map(|batch| batch.signer).collect();
    let unlimited = limits.new_services_per_signer == u64::MAX && limits.new_services == u64::MAX;
    if signers.is_empty() || unlimited {
        Ok(NewServiceCounts::default())
    } else {
        count_of_signers(connection, &signers)
    }
}

/// How many new services there are: no batch of them has ended yet.
///
/// If a ledger has a service, a batch of the service soon ends. An invented service stays new forever, so the number of
/// new services is limited.
#[derive(Debug, Default)]
struct NewServiceCounts {
    /// The number of new services that each signer has opened.
    of_signers: HashMap<SignerId, u64>,
    in_all: u64,
}

fn count_of_signers(
    connection: &mut Connection,
    signers: &BTreeSet<SignerId>,
) -> Result<NewServiceCounts, StoreError> {
    let signers: Vec<&SignerId> = signers.iter().collect();
    let rows: Vec<(i64, i64, i64)> = connection.load_row_tuples(
        "-- count_new_services
         select x.number,
             (select count(*) from new_services n where n.signer = x.signer) as of_signer,
             (select count(*) from new_services) as in_all
         from {x}",
        Rows::default()
            .long("number", (0..).take(signers.len()))
            .bytes("signer", signers.iter().map(|signer| &signer.as_bytes()[..])),
    )?;
    let mut counts = NewServiceCounts::default();
    for (number, of_signer, in_all) in rows {
        let signer = usize::try_from(number).ok().and_then(|number| signers.get(number));
        let signer =
            signer.ok_or_else(|| StoreError::corrupt("a signer that was not asked for"))?;
        let count = |count| u64::try_from(count).map_err(StoreError::corrupt);
        counts.of_signers.insert(**signer, count(of_signer)?);
        counts.in_all = count(in_all)?;
    }
    Ok(counts)
}

/// Records who opened services.
pub(super) fn record_new_services(
    connection: &mut Connection,
    openers: &BTreeMap<&str, SignerId>,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- insert_new_services
         insert into new_services (service_id, signer)
         select service_id, signer from {x} where true
         on conflict do nothing",
        Rows::default()
            .text("service_id", openers.keys().copied())
            .bytes("signer", openers.values().map(|signer| &signer.as_bytes()[..])),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(new_services_per_signer: u64, new_services: u64) -> IntakeLimits {
        IntakeLimits { new_services_per_signer, new_services, ..IntakeLimits::default() }
    }

    #[test]
    fn ten_signers_leave_new_services_to_others() {
        let limits = limits(1_000, 10_000);
        let of_ten = (0..10).fold(0, |opened, _| opened + share_of_signer(limits, opened));
        assert_eq!((of_ten, share_of_signer(limits, of_ten)), (6_517, 349));
        assert_eq!(share_of_signer(limits, 0), 1_000);
        assert_eq!(share_of_signer(limits, 9_999), 1);
    }

    #[test]
    fn unlimited_new_services_need_no_shares() {
        assert_eq!(share_of_signer(limits(5, u64::MAX), 7), 5);
        assert_eq!(share_of_signer(limits(u64::MAX, u64::MAX), 7), u64::MAX);
        assert_eq!(share_of_signer(limits(9, 9), 7), 9);
    }
}
