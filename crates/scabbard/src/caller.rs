use grid_batch_core::{HeaderId, ServiceScopeId};
use grid_batch_http::{
    HttpClient, HttpError, HttpOptions, HttpResponse, TextFrames, WebSocketOptions, join,
    open_websocket,
};
use grid_batch_protocol::CylinderToken;

/// Speaks to the services of nodes, in the name of one key. It has no `Debug`: it holds the token.
pub(crate) struct Caller {
    /// Connections of its own: they end with the runtime that opened them, and the end of a poller's
    /// must not leave a batch in doubt.
    sending: HttpClient,
    asking: HttpClient,
    socket: WebSocketOptions,
    authorization: String,
}

impl Caller {
    pub(crate) fn new(
        token: &CylinderToken,
        http: &HttpOptions,
        socket: WebSocketOptions,
    ) -> Result<Self, HttpError> {
        let authorization = format!("Bearer Cylinder:{}", token.as_str());
        let [sending, asking] = [HttpClient::new(http)?, HttpClient::new(http)?];
        Ok(Self { sending, asking, socket, authorization })
    }

    pub(crate) async fn submit(
        &self,
        node: &str,
        scope: &ServiceScopeId,
        list: Vec<u8>,
    ) -> Result<HttpResponse, HttpError> {
        let url = join(node, &path(scope, "batches"))?;
        self.sending.post(&url, &self.headers(), list).await
    }

    /// Never with `wait`, which would hold a thread of the node's.
    pub(crate) async fn ask(
        &self,
        node: &str,
        scope: &ServiceScopeId,
        ids: &[&str],
    ) -> Result<HttpResponse, HttpError> {
        let question = format!("batch_statuses?ids={}", ids.join(","));
        let url = join(node, &path(scope, &question))?;
        self.asking.get(&url, &self.headers()).await
    }

    pub(crate) async fn listen(
        &self,
        node: &str,
        scope: &ServiceScopeId,
        last_seen: Option<HeaderId>,
    ) -> Result<TextFrames, HttpError> {
        let end = match last_seen {
            Some(id) => format!("ws/subscribe?last_seen_event={id}"),
            None => "ws/subscribe".to_owned(),
        };
        let url = join(node, &path(scope, &end))?;
        open_websocket(&url, &self.headers(), &[], &self.socket).await
    }

    fn headers(&self) -> [(&str, &str); 1] {
        [("authorization", &self.authorization)]
    }
}

fn path(scope: &ServiceScopeId, end: &str) -> String {
    format!("scabbard/{}/{}/{end}", scope.circuit(), scope.service())
}
