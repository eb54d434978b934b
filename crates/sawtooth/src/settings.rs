use grid_batch_settings::settings;

settings! {
    /// The settings that only this adapter reads.
    #[derive(Debug, Clone)]
    pub struct SawtoothSettings in "ledger." {
        /// The ledger applies batches in the order in which they were sent to it, and loses only the last ones when a
        /// node restarts; needed for the strategy pipeline (sawtooth).
        ///
        /// Set it only for a sawtooth network with one publishing node to which all batches are sent. With several,
        /// batches that were sent ahead may be applied in another order.
        pub keeps_order: bool = switch("false").equal(),
    }
}
