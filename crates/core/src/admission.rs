use std::fmt;

use crate::{ServiceId, TakenBatch};

/// Limits how many batches of each service a queue takes, before it takes them.
///
/// A queue asks for places before it takes batches of a service, tells which batches it took, and returns
/// the places that are left over. A service that got fewer places than it asked for is woken when there may
/// be more.
///
/// How long a batch keeps its place depends on what is limited: until its submission has ended, or until the
/// batch itself has.
///
/// A service whose batch cannot be taken now, although it has one, puts its places back: the queue asks
/// again for it, so no service is woken that would have to wait, too.
pub trait Admission: fmt::Debug + Send + Sync {
    /// Takes up to `wanted` places for batches of this service. Returns how many.
    fn admit(&self, service_id: &ServiceId, wanted: usize) -> usize;

    /// These batches of the service were taken; each has one of the places.
    fn taken(&self, service_id: &ServiceId, batches: &[&TakenBatch]);

    /// Returns places of this service for which it had no batch.
    fn release(&self, service_id: &ServiceId, places: usize);

    /// Returns places of this service, and wakes no other. The service keeps its turn: it must ask again.
    fn put_back(&self, service_id: &ServiceId, places: usize);

    /// A batch was given back to the store before it was sent.
    fn given_back(&self, batch: &TakenBatch);

    /// The submission of a batch of this service has ended: the ledger has answered, or is not waited for
    /// any more.
    fn submission_ended(&self, service_id: &ServiceId);
}
