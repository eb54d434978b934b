use std::fmt;

use crate::ServiceId;

/// Limits which services a queue takes batches of, before it takes them.
///
/// A queue asks for a place before it takes a batch of a service, and returns it if it takes none. The
/// submitter returns it when the submission has ended. A service that got no place is woken when one is
/// free.
///
/// A service whose batch cannot be taken now, although it has one, puts its place back: the queue asks
/// again for it, so no service is woken that would have to wait, too.
pub trait Admission: fmt::Debug + Send + Sync {
    /// Takes a place for a submission of this service. `false`: there is none now.
    fn admit(&self, service_id: &ServiceId) -> bool;

    /// Returns the place of this service, if it has one.
    fn release(&self, service_id: &ServiceId);

    /// Returns the place of this service, if it has one, and wakes no other. The service keeps its turn: it
    /// must ask again.
    fn put_back(&self, service_id: &ServiceId);
}
