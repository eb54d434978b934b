use grid_batch_core::ledger::{
    ForwardedRequest, ForwardedResponse, ForwardedSocket, PassThroughError, SocketMessages,
};

use crate::Scabbard;

/// The prefix of a Splinter client's token.
const CYLINDER: &str = "Bearer Cylinder:";

/// Forwards requests of clients, other than submissions, to a node. A request without a Cylinder token gets that of the
/// adapter.
impl Scabbard {
    pub(crate) async fn forward_to_node(
        &self,
        request: ForwardedRequest,
    ) -> Result<ForwardedResponse, PassThroughError> {
        let headers = self.forwarded_headers(&request);
        self.0.forwarder.forward(&self.nodes_for(&request.path), &request, &headers).await
    }

    pub(crate) async fn open_socket_at_node(
        &self,
        request: ForwardedRequest,
        sent: SocketMessages,
    ) -> Result<ForwardedSocket, PassThroughError> {
        let (nodes, headers) = (self.nodes_for(&request.path), self.forwarded_headers(&request));
        self.0.forwarder.open_socket(&nodes, &request, &headers, sent).await
    }

    /// The headers for the node: with the token of the client, or with ours.
    fn forwarded_headers<'a>(&'a self, request: &'a ForwardedRequest) -> Vec<(&'a str, &'a str)> {
        let token = request.header("authorization").filter(|it| it.starts_with(CYLINDER));
        let version = request.header("splinterprotocolversion");
        [("authorization", token.unwrap_or(self.0.client.authorization()))]
            .into_iter()
            .chain(version.map(|version| ("splinterprotocolversion", version)))
            .collect()
    }

    fn nodes_for(&self, path: &str) -> Vec<String> {
        match &segments(path)[..] {
            ["scabbard", circuit, service, ..] => {
                self.0.nodes.status_urls(&format!("{circuit}::{service}"), "")
            }
            _ => self.0.nodes.status_urls("", ""),
        }
    }
}

/// Whether requests of this path belong to the interface of a node and only read.
pub(crate) fn is_read(is_post: bool, path: &str) -> bool {
    let segments = segments(path);
    let is_served = matches!(
        &segments[..],
        ["scabbard", _, _, "batch_statuses" | "state" | "state_root"]
            | ["scabbard", _, _, "state", _]
            | ["admin", "circuits" | "proposals"]
            | ["admin", "circuits" | "proposals", _]
            | ["authorization", "permissions"]
            | ["registry", "nodes"]
            | ["registry", "nodes", _]
            | ["status"]
    );
    is_served && !is_post && segments.iter().all(|segment| is_name(segment))
}

/// Whether the path is the websocket of a service's events.
pub(crate) fn is_socket(path: &str) -> bool {
    let segments = segments(path);
    matches!(&segments[..], ["scabbard", _, _, "ws", "subscribe"])
        && segments.iter().all(|segment| is_name(segment))
}

fn segments(path: &str) -> Vec<&str> {
    path.split('/').skip(1).collect()
}

/// Whether the text can be a part of a path, as ids and addresses are.
fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.bytes().all(is_allowed)
}
