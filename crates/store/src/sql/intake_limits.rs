/// How much intake may store. The default limits nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntakeLimits {
    /// Limit on the number of open batches of a service.
    pub open_batches: u64,
    /// Limit on the number of open batches of an authenticated client. Batches that were added without a limit do not
    /// count.
    ///
    /// Concurrent requests of a client may exceed this by a few.
    pub open_batches_of_client: u64,
    /// Limit on the number of missing transactions on which batches of one signer depend, each counted once for every
    /// batch.
    ///
    /// Concurrent requests may exceed this by a few.
    pub missing_transactions_of_signer: u64,
    /// Limit on the number of batches of a service that miss transactions.
    ///
    /// Concurrent requests may exceed this by a few.
    pub incomplete_batches: u64,
    /// Limit on the number of services that one signer has opened and in which no batch has ended yet.
    ///
    /// Instances that open services concurrently may exceed this limit, and `new_services`, by a few.
    pub new_services_per_signer: u64,
    /// Limit on the number of services in which no batch has ended yet.
    pub new_services: u64,
}

impl IntakeLimits {
    /// The limits that follow from the limit of open batches of a service. The open batches of a client are not
    /// limited.
    pub fn of_queue(open_batches: u64) -> Self {
        /// Batches that miss transactions may wait forever. One signer may fill one in this many places of a queue with
        /// them.
        const PART_OF_ONE_SIGNER: u64 = 10;
        /// All signers together may fill one in this many places, so that the rest is left for batches that can be
        /// sent.
        const PART_OF_ALL_SIGNERS: u64 = 2;
        /// The limit of new services of one signer is the limit of open batches divided by this.
        const NEW_SERVICES_OF_SIGNER: u64 = 100;
        /// The same for all signers together.
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
