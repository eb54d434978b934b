use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    ForwardedRequest, ForwardedResponse, ForwardedSocket, GlobalScopeId, PassThrough,
    PassThroughError, ScopeId, SocketMessages, StatusUrlResolver,
};
use grid_batch_http::{Forwarder, HttpError, HttpOptions};

use crate::BasicAuth;

/// Has clients' requests to the REST API, other than submissions, answered by a node.
pub struct SawtoothPassThrough {
    forwarder: Forwarder,
    nodes: Arc<dyn StatusUrlResolver>,
    auth: Option<BasicAuth>,
}

impl SawtoothPassThrough {
    /// Forwards to the nodes that the resolver returns, the first one first.
    pub fn new(
        options: &HttpOptions,
        nodes: Arc<dyn StatusUrlResolver>,
        auth: Option<BasicAuth>,
    ) -> Result<Self, HttpError> {
        Ok(Self { forwarder: Forwarder::new(options)?, nodes, auth })
    }

    fn urls(&self) -> Vec<String> {
        self.nodes.status_urls(GlobalScopeId.service_id().as_str(), "")
    }
}

impl PassThrough for SawtoothPassThrough {
    fn serves(&self, is_post: bool, path: &str) -> bool {
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        match (is_post, &segments[..]) {
            // Receipts are requested by POST if there are many.
            (true, segments) => matches!(segments, ["receipts"]),
            (
                false,
                [
                    "batches" | "batch_statuses" | "blocks" | "peers" | "receipts" | "state"
                    | "status" | "transactions",
                ],
            ) => true,
            (false, ["batches" | "blocks" | "state" | "transactions", id]) => is_hex(id),
            _ => false,
        }
    }

    /// The node makes links with the host that the client knows, from the headers for proxies. The
    /// authorization of the client is for this server.
    fn forward(
        &self,
        request: ForwardedRequest,
    ) -> BoxFuture<'_, Result<ForwardedResponse, PassThroughError>> {
        const FORWARDED: [&str; 3] = ["content-type", "x-forwarded-host", "x-forwarded-proto"];
        Box::pin(async move {
            let given =
                FORWARDED.into_iter().filter_map(|name| Some((name, request.header(name)?)));
            let auth = self.auth.as_ref().map(|auth| ("authorization", auth.header()));
            let headers: Vec<(&str, &str)> = given.chain(auth).collect();
            self.forwarder.forward(self.urls(), &request, &headers).await
        })
    }

    fn serves_socket(&self, path: &str) -> bool {
        path == "/subscriptions"
    }

    fn open_socket(
        &self,
        request: ForwardedRequest,
        sent: SocketMessages,
    ) -> BoxFuture<'_, Result<ForwardedSocket, PassThroughError>> {
        Box::pin(async move {
            let auth = self.auth.as_ref().map(|auth| ("authorization", auth.header()));
            let headers: Vec<(&str, &str)> = auth.into_iter().collect();
            self.forwarder.open_socket(self.urls(), &request, &headers, sent).await
        })
    }
}

/// Whether the text can be an id or an address, as the REST API writes them.
fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl fmt::Debug for SawtoothPassThrough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SawtoothPassThrough").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
