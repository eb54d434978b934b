/// How much intake may store. The default limits nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntakeLimits {
    /// The most open batches of a service.
    pub open_batches: u64,
    /// The most open batches of a client that has authenticated, as far as they were added with a limit.
    ///
    /// Requests of a client at the same moment may exceed this by a few.
    pub open_batches_of_client: u64,
    /// The most missing transactions that batches of one signer may depend on, each counted with every batch.
    ///
    /// Requests at the same moment may exceed this by a few.
    pub missing_transactions_of_signer: u64,
    /// The most batches of a service that miss transactions.
    ///
    /// Requests at the same moment may exceed this by a few.
    pub incomplete_batches: u64,
    /// The most services that one signer has opened and in which no batch has ended yet.
    ///
    /// Instances that open services at the same moment may exceed this, and the next, by a few.
    pub new_services_per_signer: u64,
    /// The most services in which no batch has ended yet.
    pub new_services: u64,
}

impl IntakeLimits {
    /// The limits that follow from the most open batches of a service. Those of a client have none.
    pub fn of_queue(open_batches: u64) -> Self {
        /// Batches that miss transactions wait without end. One signer may fill this part of a queue with them.
        const PART_OF_ONE_SIGNER: u64 = 10;
        /// All signers together leave the rest to batches that can be sent.
        const PART_OF_ALL_SIGNERS: u64 = 2;
        /// The part of a queue that is the number of services in which no batch has ended yet, of one signer.
        const NEW_SERVICES_OF_SIGNER: u64 = 100;
        /// The same of all signers together.
        const NEW_SERVICES: u64 = 10;
        let part = |divisor: u64| (open_batches / divisor).max(1);
        Self {
            open_batches,
            open_batches_of_client: u64::MAX,
            missing_transactions_of_signer: part(PART_OF_ONE_SIGNER),
            incomplete_batches: part(PART_OF_ALL_SIGNERS),
            new_services_per_signer: part(NEW_SERVICES_OF_SIGNER),
            new_services: part(NEW_SERVICES),
        }
    }
}

impl Default for IntakeLimits {
    fn default() -> Self {
        Self {
            open_batches: u64::MAX,
            open_batches_of_client: u64::MAX,
            missing_transactions_of_signer: u64::MAX,
            incomplete_batches: u64::MAX,
            new_services_per_signer: u64::MAX,
            new_services: u64::MAX,
        }
    }
}
