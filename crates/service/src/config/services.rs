use grid_batch_core::queue::{AfterInvalid, StrategyKind};
use grid_batch_core::{PeerService, ServiceScopeId};
use grid_batch_settings::{OfServices, nodes_of_services, peers, settings};

settings! {
    /// What the settings say of services, by their ids.
    #[derive(Clone)]
    pub struct ServicesConfig in "services.*." {
        /// URL of the node of the service, if it is not that of ledger.urls (scabbard).
        ///
        /// Use it when services are at different nodes.
        pub node: Vec<(ServiceScopeId, String)> = secret("").equal() => nodes_of_services,
        /// Other nodes of the service's circuit, each as ID@URL with the service's id at that node; they are asked
        /// about batches but get none. With all of them, the failure of a node rarely needs an operator; list all nodes
        /// of a circuit or none (scabbard).
        ///
        /// List all other nodes of each circuit, or none: the server concludes from the list whether a node coordinates
        /// its circuit.
        pub peers: Vec<PeerService> = list("").equal().with_secrets() => peers,
        /// serial: one batch of the service at a time. parallel: several; what conflicts, by what transactions
        /// declare to read and write, waits or is sent in order in one request. pipeline: several, in order, where the ledger keeps it
        /// (ledger.keeps_order). None: parallel for sawtooth, serial for other ledgers, which take no other.
        ///
        /// Use serial if clients rely on the order of batches that do not conflict, or if a transaction processor reads
        /// or writes something outside of the ledger's state.
        pub strategy: OfServices<StrategyKind> = text("").equal() => OfServices::read,
        /// What happens after an invalid batch. continue, as without it: the batches behind it are submitted. halt:
        /// those that follow it (serial, pipeline), or conflict with it or depend on it (parallel), wait until an
        /// operator lets them go on or ends them (sawtooth, scabbard).
        ///
        /// Use halt if batches build on each other in ways that their transactions do not declare, so that a batch must
        /// not be applied when the one before is invalid.
        pub after_invalid: OfServices<AfterInvalid> = text("").equal() => OfServices::read,
        /// Batches are submitted again instead of held; they may be applied twice.
        ///
        /// Set it only for services whose transactions may be applied twice without harm.
        pub resubmit_inconclusive: OfServices<bool> = switch("false").equal() => OfServices::read,
    }
}
