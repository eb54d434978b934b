use std::time::Duration;

use grid_batch_core::ItemId;
use grid_batch_core::batches::TraceContext;
use grid_batch_core::queries::ItemIdPrefix;
use grid_batch_http::HttpResponse;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    AcceptedBatch, BatchStatus, ClientError, ClientRequest, Problem, Transport,
    path::{given, path_segment, with_query},
    submitted::{ListJson, read_status, read_submitted},
    transport::HttpTransport,
};

/// The server, and options for its use.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The URL of the server, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// The access token; `None` for a server that needs none.
    pub token: Option<String>,
    /// The time limit for a request, in addition to the wait that it asks for.
    pub timeout: Duration,
    /// The trace that the requests belong to. The server stores it with batches.
    pub trace: Option<TraceContext>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            url: "http://127.0.0.1:8080".to_owned(),
            token: None,
            timeout: Duration::from_secs(30),
            trace: None,
        }
    }
}

/// A client of one server. Its methods block.
pub struct Client {
    transport: Box<dyn Transport>,
}

/// The maximum wait that a request asks for.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl Client {
    /// Creates a client. It connects when it is used.
    pub fn new(options: ClientOptions) -> Result<Self, ClientError> {
        HttpTransport::new(options).map(Self::over)
    }

    /// A client that uses this transport.
    pub fn over(transport: impl Transport + 'static) -> Self {
        Self { transport: Box::new(transport) }
    }

    /// The source of answers: the URL of the server without a password, or the name of the interface in this process.
    pub fn name(&self) -> String {
        self.transport.name()
    }

    /// Stores the batches of a serialized list. Without a service, they are for the ledger's only one. `is_new`: the
    /// ledger has never committed them.
    pub fn submit(
        &self,
        list: &[u8],
        service_id: Option<&str>,
        label: Option<&str>,
        is_new: bool,
    ) -> Result<Vec<AcceptedBatch>, ClientError> {
        let new = is_new.then_some("true");
        let parameters = given([("service_id", service_id), ("label", label), ("new", new)]);
        let target = with_query("/v1/batches", &parameters);
        let response = self.send(&target, "application/octet-stream", list.to_vec())?;
        self.parse_list(response, read_submitted)
    }

    /// The statuses of batches, in the order of the ids. With a wait, the answer comes when all have ended, or after
    /// that time, at most a minute.
    pub fn statuses(
        &self,
        ids: &[ItemId],
        service_id: Option<&str>,
        wait: Option<Duration>,
    ) -> Result<Vec<BatchStatus>, ClientError> {
        let wait = wait.map(|wait| wait.min(LONGEST_WAIT).as_secs().max(1).to_string());
        let parameters = given([("service_id", service_id), ("wait", wait.as_deref())]);
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let target = with_query("/batch_statuses", &parameters);
        let response = self.send(&target, "application/json", Value::from(ids).to_string())?;
        self.parse_list(response, read_status)
    }

    /// The resource at a path, such as `/v1/services`.
    pub fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value, ClientError> {
        self.parse(self.request("GET", &with_query(path, parameters))?)
    }

    /// Removes the resource at a path, such as `/v1/webhooks/1`.
    pub fn delete(&self, path: &str, parameters: &[(&str, &str)]) -> Result<(), ClientError> {
        let response = self.request("DELETE", &with_query(path, parameters))?;
        match response.status {
            204 => Ok(()),
            _ => self.parse::<Value>(response).map(drop),
        }
    }

    /// The health at `/health` or a path below it, which is a report also if the server is not healthy.
    pub fn health(&self, path: &str) -> Result<Value, ClientError> {
        let mut response = self.request("GET", path)?;
        let body = response.body.as_deref().unwrap_or_default();
        let report = serde_json::from_slice(body).ok();
        if report.as_ref().is_some_and(|report: &Value| report["parts"].is_object()) {
            response.status = 200;
        }
        self.parse(response)
    }

    /// Asks the server for an action, such as `/v1/pause`. The body is a JSON object.
    pub fn post(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
        body: &Value,
    ) -> Result<Value, ClientError> {
        let target = with_query(path, parameters);
        self.parse(self.send(&target, "application/json", body.to_string())?)
    }

    /// Like [`post`](Self::post), for something that is stored once: the server answers a repetition with the same key
    /// and contents with what it has stored.
    pub fn post_once(
        &self,
        path: &str,
        idempotency_key: &str,
        body: &Value,
    ) -> Result<Value, ClientError> {
        let request = ClientRequest {
            method: "POST",
            target: path,
            content_type: Some("application/json"),
            idempotency_key: Some(idempotency_key),
            body: body.to_string().into_bytes(),
        };
        self.parse(self.transport.send(request)?)
    }

    /// A batch. The first characters of its id are enough.
    pub fn batch(&self, id: &ItemIdPrefix, service_id: Option<&str>) -> Result<Value, ClientError> {
        self.get(&format!("/v1/batches/{id}"), &given([("service_id", service_id)]))
    }

    /// Why a batch waits. The first characters of its id are enough.
    pub fn explain_batch(
        &self,
        id: &ItemIdPrefix,
        service_id: Option<&str>,
    ) -> Result<Value, ClientError> {
        self.get(&format!("/v1/batches/{id}/explain"), &given([("service_id", service_id)]))
    }

    /// Why a service waits.
    pub fn explain_service(&self, service_id: &str) -> Result<Value, ClientError> {
        self.get(&format!("/v1/services/{}/explain", path_segment(service_id)), &[])
    }

    fn request(&self, method: &'static str, target: &str) -> Result<HttpResponse, ClientError> {
        self.transport.send(ClientRequest {
            method,
            target,
            content_type: None,
            idempotency_key: None,
            body: Vec::new(),
        })
    }

    fn send(
        &self,
        target: &str,
        content_type: &'static str,
        body: impl Into<Vec<u8>>,
    ) -> Result<HttpResponse, ClientError> {
        self.transport.send(ClientRequest {
            method: "POST",
            target,
            content_type: Some(content_type),
            idempotency_key: None,
            body: body.into(),
        })
    }

    fn parse<T: DeserializeOwned>(&self, response: HttpResponse) -> Result<T, ClientError> {
        let HttpResponse { status, retry_after, body } = response;
        let body = body.map_err(|source| ClientError::Unreachable { url: self.name(), source })?;
        if (200..300).contains(&status) {
            return serde_json::from_slice(&body)
                .map_err(|error| self.not_understood(error.to_string()));
        }
        let json: Option<Value> = serde_json::from_slice(&body).ok();
        let Some(problem) = json.as_ref().and_then(Problem::read) else {
            return Err(self.not_understood(format!("it has the HTTP status {status}")));
        };
        Err(match status {
            429 | 503 => ClientError::Busy { problem, retry_after },
            _ => ClientError::Refused { status, problem },
        })
    }

    fn parse_list<J: DeserializeOwned, T>(
        &self,
        response: HttpResponse,
        read: fn(J) -> Result<T, String>,
    ) -> Result<Vec<T>, ClientError> {
        let list: ListJson<J> = self.parse(response)?;
        let entries: Result<Vec<T>, String> = list.data.into_iter().map(read).collect();
        entries.map_err(|reason| self.not_understood(reason))
    }

    fn not_understood(&self, reason: impl Into<String>) -> ClientError {
        ClientError::NotUnderstood { url: self.name(), reason: reason.into() }
    }
}
