use std::collections::HashMap;

use grid_batch_core::ServiceId;

use crate::{ConfigError, GivenValue, Setting, SettingValue, SettingValues};

/// What settings say of services: of single ones by their ids, and of all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfServices<T> {
    /// Of all services that are not named.
    pub others: Option<T>,
    /// Of single services.
    pub services: HashMap<ServiceId, T>,
}

impl<T> OfServices<T> {
    /// What counts for this service.
    pub fn of(&self, service: &ServiceId) -> Option<&T> {
        self.services.get(service).or(self.others.as_ref())
    }

    /// Reads a setting whose keys are ids of services, or `*`.
    pub fn read(values: &SettingValues, setting: &Setting) -> Result<Self, ConfigError>
    where
        T: SettingValue,
    {
        let mut read = Self { others: None, services: HashMap::new() };
        for given in values.entries(setting) {
            let value = given.get()?;
            match given.key.as_deref() {
                Some("*") => read.others = Some(value),
                key => {
                    drop(read.services.insert(service_id(given, key.unwrap_or_default())?, value))
                }
            }
        }
        Ok(read)
    }
}

fn service_id(given: &GivenValue, key: &str) -> Result<ServiceId, ConfigError> {
    if key.contains('*') {
        let rule = format!(
            "{} has a pattern as its key; it must be the id of a service, or *",
            given.name()
        );
        return Err(given.conflict(rule));
    }
    key.parse().map_err(|error| given.conflict(format!("{}: {error}", given.name())))
}
