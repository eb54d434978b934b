use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    ForwardedRequest, ForwardedResponse, ForwardedSocket, PassThrough, PassThroughError,
    SocketMessages, StatusUrlResolver,
};
use grid_batch_http::{Forwarder, HttpError, HttpOptions};
use grid_batch_protocol::CylinderToken;

/// What precedes the token of a client of Splinter.
const CYLINDER: &str = "Bearer Cylinder:";

/// Has clients' requests to a Splinter node, other than submissions, answered by one.
pub struct ScabbardPassThrough {
    forwarder: Forwarder,
    /// The nodes of a service.
    nodes: Arc<dyn StatusUrlResolver>,
    /// All nodes, for requests that name no service.
    all_nodes: Arc<dyn StatusUrlResolver>,
    authorization: String,
}

impl ScabbardPassThrough {
    /// Forwards to the nodes that the resolvers return: `nodes` those of a service, `all_nodes` all. A
    /// request without a Cylinder token gets this one.
    pub fn new(
        options: &HttpOptions,
        nodes: Arc<dyn StatusUrlResolver>,
        all_nodes: Arc<dyn StatusUrlResolver>,
        token: &CylinderToken,
    ) -> Result<Self, HttpError> {
        let authorization = format!("{CYLINDER}{}", token.as_str());
        Ok(Self { forwarder: Forwarder::new(options)?, nodes, all_nodes, authorization })
    }

    /// The headers for the node: with the token of the client, or with ours.
    fn headers<'a>(&'a self, request: &'a ForwardedRequest) -> Vec<(&'a str, &'a str)> {
        let token = request.header("authorization").filter(|it| it.starts_with(CYLINDER));
        let version = request.header("splinterprotocolversion");
        [("authorization", token.unwrap_or(&self.authorization))]
            .into_iter()
            .chain(version.map(|version| ("splinterprotocolversion", version)))
            .collect()
    }

    fn nodes_for(&self, path: &str) -> Vec<String> {
        match &segments(path)[..] {
            ["scabbard", circuit, service, ..] => {
                self.nodes.status_urls(&format!("{circuit}::{service}"), "")
            }
            _ => self.all_nodes.status_urls("", ""),
        }
    }
}

fn segments(path: &str) -> Vec<&str> {
    path.split('/').skip(1).collect()
}

impl PassThrough for ScabbardPassThrough {
    fn serves(&self, is_post: bool, path: &str) -> bool {
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

    fn forward(
        &self,
        request: ForwardedRequest,
    ) -> BoxFuture<'_, Result<ForwardedResponse, PassThroughError>> {
        Box::pin(async move {
            let headers = self.headers(&request);
            self.forwarder.forward(self.nodes_for(&request.path), &request, &headers).await
        })
    }

    fn serves_socket(&self, path: &str) -> bool {
        let segments = segments(path);
        matches!(&segments[..], ["scabbard", _, _, "ws", "subscribe"])
            && segments.iter().all(|segment| is_name(segment))
    }

    fn open_socket(
        &self,
        request: ForwardedRequest,
        sent: SocketMessages,
    ) -> BoxFuture<'_, Result<ForwardedSocket, PassThroughError>> {
        Box::pin(async move {
            let (nodes, headers) = (self.nodes_for(&request.path), self.headers(&request));
            self.forwarder.open_socket(nodes, &request, &headers, sent).await
        })
    }
}

/// Whether the text can be a part of a path, as ids and addresses are.
fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.bytes().all(is_allowed)
}

impl fmt::Debug for ScabbardPassThrough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScabbardPassThrough").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
