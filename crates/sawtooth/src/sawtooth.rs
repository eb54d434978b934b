use std::sync::Arc;

use grid_batch_core::StatusUrlResolver;
use grid_batch_http::{HttpError, SocketOptions};

use crate::{
    SawtoothEvents, SawtoothEvidenceReader, SawtoothOptions, SawtoothSender, SawtoothStatusReader,
    caller::Caller,
};

/// The adapter, of which each part can be had by itself, and on a runtime of its own.
///
/// What asks shares its connections. What sends has others: a connection ends with the runtime that
/// opened it, and the end of a poller's must not leave a batch in doubt.
#[derive(Debug, Clone)]
pub struct Sawtooth {
    sending: Caller,
    asking: Caller,
    sockets: SocketOptions,
    connections: usize,
}

impl Sawtooth {
    /// An adapter with these options.
    pub fn new(options: SawtoothOptions) -> Result<Self, HttpError> {
        let SawtoothOptions { http, sockets, basic_auth, connections } = options;
        let caller = || Caller::new(&http, basic_auth.clone());
        Ok(Self { sending: caller()?, asking: caller()?, sockets, connections })
    }

    /// Sends batches.
    pub fn sender(&self) -> SawtoothSender {
        SawtoothSender::new(self.sending.clone())
    }

    /// Asks for statuses, at the nodes that the resolver names.
    pub fn status_reader(&self, resolver: Arc<dyn StatusUrlResolver>) -> SawtoothStatusReader {
        SawtoothStatusReader::new(self.asking.clone(), resolver, self.connections)
    }

    /// Looks for proof, at all nodes that the resolver names.
    pub fn evidence_reader(&self, resolver: Arc<dyn StatusUrlResolver>) -> SawtoothEvidenceReader {
        SawtoothEvidenceReader::new(self.asking.clone(), resolver)
    }

    /// Listens for blocks at one of these nodes, the best first.
    pub fn events(&self, nodes: impl IntoIterator<Item = impl Into<String>>) -> SawtoothEvents {
        let nodes = nodes.into_iter().map(Into::into).collect();
        SawtoothEvents::new(self.asking.clone(), nodes, self.sockets.clone())
    }
}
