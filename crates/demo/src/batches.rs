//! The batches of a demonstration. The same seed makes the same batches.

use grid_batch_core::{GlobalScopeId, ItemId, ScopeId, ServiceId, ServiceScopeId};
use grid_batch_protocol::{
    Batch, BatchBuilder, BatchList, Message, SigningKey, TransactionBuilder,
};

use crate::{DemoError, SimulatedLedger, accounts};

/// An unlimited number of batches for a demonstration.
#[derive(Debug)]
pub(crate) struct DemoBatches {
    ledger: SimulatedLedger,
    seed: u64,
    key: SigningKey,
    services: Vec<ServiceId>,
}

impl DemoBatches {
    pub(crate) fn new(
        ledger: SimulatedLedger,
        services: usize,
        seed: u64,
    ) -> Result<Self, DemoError> {
        let circuit = seed % 0x1000_0000;
        let services = match ledger {
            SimulatedLedger::Sawtooth => vec![GlobalScopeId.service_id().clone()],
            SimulatedLedger::Scabbard => (0..services)
                .map(|number| format!("demo-{circuit:07x}::s{number:04}").parse())
                .collect::<Result<_, _>>()
                .map_err(DemoError::internal)?,
        };
        Ok(Self { ledger, seed, key: SigningKey::from_seed(seed), services })
    }

    pub(crate) fn services(&self) -> &[ServiceId] {
        &self.services
    }

    /// The services as scopes of Scabbard.
    pub(crate) fn scopes(&self) -> Result<Vec<ServiceScopeId>, DemoError> {
        self.services
            .iter()
            .map(|service| ServiceScopeId::from_service_id(service).map_err(DemoError::internal))
            .collect()
    }

    /// How many of `total` batches are for this service; they are distributed evenly.
    pub(crate) fn count_for(&self, service: usize, total: usize) -> usize {
        let count = self.services.len();
        total / count + usize::from(service < total % count)
    }

    /// A serialized list of these batches of a service, counted from 0.
    pub(crate) fn list(&self, service: usize, numbers: impl Iterator<Item = usize>) -> Vec<u8> {
        let batches = numbers.map(|number| self.batch(service, number)).collect();
        BatchList { batches }.encode_to_vec()
    }

    /// The services and ids of the first `total` batches.
    pub(crate) fn ids(&self, total: usize) -> Result<Vec<(ServiceId, ItemId)>, DemoError> {
        let mut ids = Vec::with_capacity(total);
        for (index, service) in self.services.iter().enumerate() {
            for number in 0..self.count_for(index, total) {
                let id = self.batch(index, number).header_signature;
                ids.push((service.clone(), id.parse().map_err(DemoError::internal)?));
            }
        }
        Ok(ids)
    }

    /// The first `total` batches of the only service of a Sawtooth ledger, in the order in which they are
    /// sent.
    pub(crate) fn in_order(&self, total: usize) -> Vec<Batch> {
        (0..total).map(|number| self.batch(0, number)).collect()
    }

    fn batch(&self, service: usize, number: usize) -> Batch {
        let transaction = match self.ledger {
            SimulatedLedger::Sawtooth => accounts::transaction(number),
            SimulatedLedger::Scabbard => TransactionBuilder::new("demo", "1.0")
                .inputs(["d3"])
                .outputs(["d3"])
                .payload(format!("set {service} to {number}")),
        };
        let transaction = transaction
            .nonce(format!("{}/{service}/{number}", self.seed))
            .sign(&self.key, &self.key.public_key());
        BatchBuilder::new().transaction(transaction).sign(&self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_makes_the_same_batches() {
        let make =
            |seed| DemoBatches::new(SimulatedLedger::Scabbard, 3, seed).unwrap().ids(7).unwrap();
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
        assert_eq!(make(1).len(), 7);
    }

    #[test]
    fn more_batches_keep_the_first_ones() {
        let batches = DemoBatches::new(SimulatedLedger::Sawtooth, 1, 5).unwrap();
        assert_eq!(batches.ids(9).unwrap()[..4], batches.ids(4).unwrap());
    }
}
