use std::sync::Arc;

use grid_batch_core::{ItemId, ServiceScopeId};
use grid_batch_http::{HttpError, HttpRequests, HttpResponse, TextFrames, WebSocketOptions, join};
use grid_batch_protocol::CylinderToken;

/// Sends requests to services on nodes, authorized by a token.
///
/// It has no `Debug`, because it holds the token.
pub(crate) struct NodeClient {
    /// Each runtime has connections of its own, so the end of the poller's runtime leaves no submission in doubt.
    client: Arc<dyn HttpRequests>,
    websocket: WebSocketOptions,
    authorization: String,
}

impl NodeClient {
    pub(crate) fn new(
        token: &CylinderToken,
        client: Arc<dyn HttpRequests>,
        websocket: WebSocketOptions,
    ) -> Self {
        Self { client, websocket, authorization: authorization(token.as_str()) }
    }

    /// The value of the header that authorizes a request.
    pub(crate) fn authorization(&self) -> &str {
        &self.authorization
    }

    pub(crate) async fn submit(
        &self,
        node: &str,
        scope: &ServiceScopeId,
        list: Vec<u8>,
    ) -> Result<HttpResponse, HttpError> {
        let url = service_url(node, scope, "batches")?;
        self.client.post(&url, &self.headers(), list.into()).await
    }

    /// Requests statuses without `wait`, because that would occupy a thread of the node.
    pub(crate) async fn get_statuses(
        &self,
        node: &str,
        scope: &ServiceScopeId,
        ids: &[&str],
    ) -> Result<HttpResponse, HttpError> {
        let path = format!("batch_statuses?ids={}", ids.join(","));
        let url = service_url(node, scope, &path)?;
        self.client.get(&url, &self.headers()).await
    }

    /// Asks whether the owner of another token may write to the service. The request contains a list that cannot be
    /// decoded. A node authorizes a request before it reads the body, so it either answers 401 or refuses the body.
    pub(crate) async fn ask_whether_may_write(
        &self,
        node: &str,
        scope: &ServiceScopeId,
        token: &str,
    ) -> Result<HttpResponse, HttpError> {
        /// A batch of 127 bytes, none of which follow.
        const CUT_OFF: &[u8] = &[0x0a, 0x7f];
        let url = service_url(node, scope, "batches")?;
        let authorization = authorization(token);
        self.client.post(&url, &[("authorization", &authorization)], CUT_OFF.to_vec().into()).await
    }

    /// Asks whether the owner of another token may read the service. The request names no batch, which a node notices
    /// after it has authorized the request.
    pub(crate) async fn ask_whether_may_read(
        &self,
        node: &str,
        scope: &ServiceScopeId,
        token: &str,
    ) -> Result<HttpResponse, HttpError> {
        let url = service_url(node, scope, "batch_statuses")?;
        let authorization = authorization(token);
        self.client.get(&url, &[("authorization", &authorization)]).await
    }

    pub(crate) async fn get_state_root(
        &self,
        node: &str,
        scope: &ServiceScopeId,
    ) -> Result<HttpResponse, HttpError> {
        let url = service_url(node, scope, "state_root")?;
        self.client.get(&url, &self.headers()).await
    }

    /// Asks for the status of the node, without authorization. Any response shows that it answers, also a refusal.
    pub(crate) async fn ask_whether_it_answers(&self, node: &str) {
        if let Ok(url) = join(node, "status") {
            drop(self.client.get(&url, &[]).await);
        }
    }

    pub(crate) async fn subscribe(
        &self,
        node: &str,
        scope: &ServiceScopeId,
        last_event: Option<ItemId>,
    ) -> Result<TextFrames, HttpError> {
        let path = match last_event {
            Some(id) => format!("ws/subscribe?last_seen_event={id}"),
            None => "ws/subscribe".to_owned(),
        };
        let url = service_url(node, scope, &path)?;
        self.client.open_websocket(&url, &self.headers(), &[], &self.websocket).await
    }

    fn headers(&self) -> [(&str, &str); 1] {
        [("authorization", &self.authorization)]
    }
}

fn authorization(token: &str) -> String {
    format!("Bearer Cylinder:{token}")
}

fn service_url(node: &str, scope: &ServiceScopeId, path: &str) -> Result<String, HttpError> {
    join(node, &format!("scabbard/{}/{}/{path}", scope.circuit(), scope.service()))
}
