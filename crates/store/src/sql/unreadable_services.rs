use std::{collections::BTreeMap, sync::Mutex};

use grid_batch_core::{Excerpt, ServiceId};
use grid_batch_support::lock;
use log::error;

/// The services that this process has found whose names in the database are not service ids. They are left out, so that
/// all others continue.
#[derive(Debug, Default)]
pub(crate) struct UnreadableServices(Mutex<BTreeMap<String, String>>);

impl UnreadableServices {
    /// Parses a name as a service id. If it is not one, this is logged once and remembered.
    pub(crate) fn read(&self, name: &str) -> Option<ServiceId> {
        let refused = match name.parse() {
            Ok(service) => return Some(service),
            Err(error) => error,
        };
        let shown = Excerpt::of(name).to_string();
        if lock(&self.0).insert(name.to_owned(), shown).is_none() {
            error!(error:% = refused;
                "the name of a service in the database cannot be read; the service is left out, and its batches wait \
                 until the name is corrected in the database and the server is started again");
        }
        None
    }

    /// The names as they are in the database.
    pub(crate) fn names(&self) -> Vec<String> {
        lock(&self.0).keys().cloned().collect()
    }

    /// The names in a form that can be shown.
    pub(crate) fn shown(&self) -> Vec<String> {
        lock(&self.0).values().cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.0).len()
    }
}
