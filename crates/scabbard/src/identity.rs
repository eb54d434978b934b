use futures_core::future::BoxFuture;
use grid_batch_core::{BatchResult, LedgerIdentityReader};
use grid_batch_http::{HttpClient, HttpError, HttpOptions, join};

/// Tells nothing: a Splinter node has no id that all nodes of its network share.
///
/// Each node has an id of its own, and a node lists only the circuits that it is a member of, which
/// are created and disbanded while a network lives. So a Scabbard ledger is identified by its kind
/// and by the name that the operator gave it.
#[derive(Debug, Clone)]
pub struct ScabbardIdentityReader {
    client: HttpClient,
}

impl ScabbardIdentityReader {
    /// A reader with connections of its own.
    pub fn new(options: &HttpOptions) -> Result<Self, HttpError> {
        Ok(Self { client: HttpClient::new(options)? })
    }
}

impl LedgerIdentityReader for ScabbardIdentityReader {
    fn read_id<'a>(&'a self, _: &'a str) -> BoxFuture<'a, BatchResult<String>> {
        Box::pin(async { Ok(String::new()) })
    }

    /// Asks for the status of the node. Any response shows that it answers, also a refusal of the request.
    fn probe<'a>(&'a self, node: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Ok(url) = join(node, "status") {
                drop(self.client.get(&url, &[]).await);
            }
        })
    }
}
