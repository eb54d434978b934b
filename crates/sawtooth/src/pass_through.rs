use grid_batch_core::ledger::{
    ForwardedRequest, ForwardedResponse, ForwardedSocket, PassThroughError, SocketMessages,
};
use grid_batch_core::{GlobalScopeId, ScopeId};

use crate::Sawtooth;

/// Forwards requests of clients to the REST API of a node, other than submissions.
impl Sawtooth {
    /// From the proxy headers, the node creates links with the host that the client knows. The client's authorization
    /// is not forwarded, because it is for this server.
    pub(crate) async fn forward_to_node(
        &self,
        request: ForwardedRequest,
    ) -> Result<ForwardedResponse, PassThroughError> {
        const FORWARDED: [&str; 3] = ["content-type", "x-forwarded-host", "x-forwarded-proto"];
        let given = FORWARDED.into_iter().filter_map(|name| Some((name, request.header(name)?)));
        let headers: Vec<(&str, &str)> = given.chain(self.authorization()).collect();
        self.forwarder.forward(&self.all_nodes(), &request, &headers).await
    }

    pub(crate) async fn open_socket_at_node(
        &self,
        request: ForwardedRequest,
        sent: SocketMessages,
    ) -> Result<ForwardedSocket, PassThroughError> {
        let headers: Vec<(&str, &str)> = self.authorization().into_iter().collect();
        self.forwarder.open_socket(&self.all_nodes(), &request, &headers, sent).await
    }

    fn authorization(&self) -> Option<(&'static str, &str)> {
        self.options.basic_auth.as_ref().map(|auth| ("authorization", auth.header()))
    }

    fn all_nodes(&self) -> Vec<String> {
        self.nodes.status_urls(GlobalScopeId.service_id().as_str(), "")
    }
}

/// Whether requests of this path only read.
pub(crate) fn is_read(is_post: bool, path: &str) -> bool {
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    match (is_post, &segments[..]) {
        // Receipts are requested by POST if there are many.
        (true, segments) => matches!(segments, ["receipts"]),
        (
            false,
            [
                "batches" | "batch_statuses" | "blocks" | "peers" | "receipts" | "state" | "status"
                | "transactions",
            ],
        ) => true,
        (false, ["batches" | "blocks" | "state" | "transactions", id]) => is_hex(id),
        _ => false,
    }
}

/// Whether the text can be an id or an address, as the REST API writes them.
fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
