use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    ForwardedRequest, ForwardedResponse, PassThrough, PassThroughError, StatusUrlResolver,
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
            let token = request.header("authorization").filter(|it| it.starts_with(CYLINDER));
            let version = request.header("splinterprotocolversion");
            let headers: Vec<(&str, &str)> =
                [("authorization", token.unwrap_or(&self.authorization))]
                    .into_iter()
                    .chain(version.map(|version| ("splinterprotocolversion", version)))
                    .collect();
            self.forwarder.forward(self.nodes_for(&request.path), &request, &headers).await
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
