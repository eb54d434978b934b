use std::fmt;

use crate::ServiceId;
use crate::queue::TakenBatch;

/// Limits how many batches of each service a queue takes, before it takes them.
///
/// A queue asks for places before it takes batches of a service, reports which batches it took, and returns the places
/// that are left over. A service that got fewer places than it asked for is woken when more may be available.
///
/// How long a batch keeps its place depends on what is limited: until its submission has ended, or until the
/// batch itself has.
///
/// If a service has a batch that cannot be taken now, the queue puts its places back and asks again later. No other
/// service is woken then, because it would have to wait as well.
pub trait Admission: fmt::Debug + Send + Sync {
    /// Takes up to `wanted` places for batches of this service. Returns how many.
    fn admit(&self, service_id: &ServiceId, wanted: usize) -> usize;

    /// Reports that these batches of the service were taken. Each has one of the places.
    fn taken(&self, service_id: &ServiceId, batches: &[&TakenBatch]);

    /// Returns places for which this service had no batch.
    fn release(&self, service_id: &ServiceId, places: usize);

    /// Returns places of this service without waking another service. The service keeps its turn and must ask again.
    fn put_back(&self, service_id: &ServiceId, places: usize);

    /// Reports that a batch was given back to the store before it was sent.
    fn given_back(&self, batch: &TakenBatch);

    /// Reports that the submission of a batch of this service has ended: the ledger has answered, or the submitter has
    /// stopped waiting for it.
    fn submission_ended(&self, service_id: &ServiceId);
}
