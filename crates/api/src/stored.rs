use std::panic::{AssertUnwindSafe, catch_unwind};

use grid_batch_core::ServiceId;
use log::error;

/// Whoever is to know which services have new batches.
pub(crate) type Stored = dyn Fn(&[ServiceId]) + Send + Sync;

/// Tells of a commit. Whoever is told and panics changes no answer: what is stored is stored.
pub(crate) fn tell(stored: &Stored, services: &[ServiceId]) {
    if catch_unwind(AssertUnwindSafe(|| stored(services))).is_err() {
        error!(services = services.len(); "whoever is told of new batches panicked");
    }
}
