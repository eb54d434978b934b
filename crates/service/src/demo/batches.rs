//! The batches of a demonstration: made anew at each start, and the same for the same seed.

use grid_batch_core::{GlobalScopeId, HeaderId, ScopeId, ServiceId, ServiceScopeId};
use grid_batch_protocol::{BatchBuilder, BatchList, Message, SigningKey, TransactionBuilder};

use crate::demo::{DemoError, SimulatedLedger};

/// All batches of a demonstration.
#[derive(Debug)]
pub(super) struct Batches {
    seed: u64,
    key: SigningKey,
    services: Vec<ServiceId>,
}

impl Batches {
    pub(super) fn new(
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
        Ok(Self { seed, key: SigningKey::from_seed(seed), services })
    }

    pub(super) fn services(&self) -> &[ServiceId] {
        &self.services
    }

    /// The services as Scabbard knows them.
    pub(super) fn scopes(&self) -> Result<Vec<ServiceScopeId>, DemoError> {
        self.services
            .iter()
            .map(|service| ServiceScopeId::from_service_id(service).map_err(DemoError::internal))
            .collect()
    }

    /// Which of `total` batches, dealt out in turn, are for the service of this number.
    pub(super) fn of_service(&self, service: usize, total: usize) -> usize {
        let count = self.services.len();
        total / count + usize::from(service < total % count)
    }

    /// The bytes of a list of some batches of a service, counted from 0.
    pub(super) fn list(&self, service: usize, numbers: impl Iterator<Item = usize>) -> Vec<u8> {
        let batches = numbers.map(|number| self.batch(service, number)).collect();
        BatchList { batches }.encode_to_vec()
    }

    /// What is promised when all of `total` batches have been taken.
    pub(super) fn promised(&self, total: usize) -> Result<Vec<(ServiceId, HeaderId)>, DemoError> {
        let mut promised = Vec::with_capacity(total);
        for (index, service) in self.services.iter().enumerate() {
            for number in 0..self.of_service(index, total) {
                let id = self.batch(index, number).header_signature;
                promised.push((service.clone(), id.parse().map_err(DemoError::internal)?));
            }
        }
        Ok(promised)
    }

    fn batch(&self, service: usize, number: usize) -> grid_batch_protocol::Batch {
        let transaction = TransactionBuilder::new("demo", "1.0")
            .inputs(["d3"])
            .outputs(["d3"])
            .nonce(format!("{}/{service}/{number}", self.seed))
            .payload(format!("set {service} to {number}"))
            .sign(&self.key, &self.key.public_key());
        BatchBuilder::new().transaction(transaction).sign(&self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_batches() {
        let make =
            |seed| Batches::new(SimulatedLedger::Scabbard, 3, seed).unwrap().promised(7).unwrap();
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
        assert_eq!(make(1).len(), 7);
    }

    #[test]
    fn more_batches_begin_with_those_that_were_there() {
        let batches = Batches::new(SimulatedLedger::Sawtooth, 1, 5).unwrap();
        assert_eq!(batches.promised(9).unwrap()[..4], batches.promised(4).unwrap());
    }
}
