//! The forms of error responses. Each kind of client gets the errors of the interface that it was written for.

use axum::{
    Json,
    extract::Request,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::http::{error_response::ErrorDetails, json_types};

/// Which interface a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorDialect {
    /// Our own interface, below `/v1`.
    Own,
    /// The REST API of Sawtooth.
    Sawtooth,
    /// Withdrawals and rewards: the fields of our own interface, and those of Sawtooth's.
    Withdrawals,
    /// The REST API of a Splinter node: Scabbard's below `/scabbard`, and what concerns the node.
    Scabbard,
}

impl ErrorDialect {
    /// The interface that a path belongs to.
    pub(crate) fn of(path: &str) -> Self {
        match path.split('/').nth(1) {
            Some("v1") => Self::Own,
            Some("withdrawals" | "rewards") => Self::Withdrawals,
            Some("scabbard" | "admin" | "registry" | "authorization") => Self::Scabbard,
            _ => Self::Sawtooth,
        }
    }

    /// Adds the body of an error response.
    pub(crate) fn write(self, mut response: Response) -> Response {
        let Some(details) = response.extensions_mut().remove::<ErrorDetails>() else {
            return response;
        };
        let body = match self {
            Self::Own => problem(Problem::new(response.status(), details)),
            Self::Withdrawals => problem(WithdrawalProblem::new(response.status(), details)),
            Self::Sawtooth => Json(SawtoothErrorBody::new(details)).into_response(),
            Self::Scabbard => {
                Json(ScabbardErrorBody::new(response.status(), details)).into_response()
            }
        };
        let (body_parts, body) = body.into_parts();
        if let Some(content_type) = body_parts.headers.get(CONTENT_TYPE) {
            response.headers_mut().insert(CONTENT_TYPE, content_type.clone());
        }
        *response.body_mut() = body;
        response
    }
}

fn problem(body: impl Serialize) -> Response {
    ([(CONTENT_TYPE, "application/problem+json")], Json(body)).into_response()
}

/// Writes the bodies of error responses, in the form of the interface that the path belongs to.
pub(crate) async fn write_errors<R: Future<Output = Response>>(
    request: Request,
    next: impl FnOnce(Request) -> R,
) -> Response {
    let dialect = ErrorDialect::of(request.uri().path());
    dialect.write(next(request).await)
}

json_types! {
    /// An error of our own interface: problem details (RFC 9457).
    pub(crate) struct Problem(http_status: StatusCode, details: ErrorDetails) {
        r#type: String = format!("urn:grid-batch:problem:{}", details.code),
        title: &'static str = details.title,
        status: u16 = http_status.as_u16(),
        detail: String = details.message,
        code: u16 = details.code,
        #[serde(skip_serializing_if = "Option::is_none")]
        link: Option<String> = details.link,
    }

    /// An error about withdrawals or rewards.
    pub(crate) struct WithdrawalProblem(http_status: StatusCode, details: ErrorDetails) {
        #[serde(flatten)]
        problem: Problem = Problem::new(http_status, details.clone()),
        /// The same in the form of Sawtooth's REST API.
        error: SawtoothError = SawtoothError::new(details),
    }

    pub(crate) struct SawtoothErrorBody(details: ErrorDetails) {
        error: SawtoothError = SawtoothError::new(details),
    }

    pub(crate) struct SawtoothError(details: ErrorDetails) {
        code: u16 = details.code,
        title: &'static str = details.title,
        message: String = details.message,
        #[serde(skip_serializing_if = "Option::is_none")]
        link: Option<String> = details.link,
    }

    pub(crate) struct ScabbardErrorBody(http_status: StatusCode, details: ErrorDetails) {
        code: String = http_status.as_u16().to_string(),
        message: String = details.message,
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;
    use crate::http::{ApiError, RequestError};

    async fn body(path: &str) -> (String, String) {
        let response =
            ErrorDialect::of(path).write(ApiError::from(RequestError::NotFound).into_response());
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        let content_type = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (content_type, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn each_interface_has_its_own_form_of_errors() {
        let message = RequestError::NotFound.to_string();
        let own = format!(
            r#"{{"type":"urn:grid-batch:problem:1001","title":"Not Found","status":404,"detail":"{message}","code":1001}}"#
        );
        assert_eq!(body("/v1/batches").await, ("application/problem+json".to_owned(), own));
        let sawtooth =
            format!(r#"{{"error":{{"code":1001,"title":"Not Found","message":"{message}"}}}}"#);
        assert_eq!(body("/batches").await, ("application/json".to_owned(), sawtooth));
        let (content_type, both) = body("/withdrawals/x").await;
        assert_eq!(content_type, "application/problem+json");
        let both: serde_json::Value = serde_json::from_str(&both).unwrap();
        assert_eq!((&both["code"], &both["error"]["code"]), (&1001.into(), &1001.into()));
        assert_eq!(
            (&both["detail"], &both["error"]["message"]),
            (&message.into(), &both["detail"])
        );
        let message = RequestError::NotFound.to_string();
        let scabbard = format!(r#"{{"code":"404","message":"{message}"}}"#);
        for path in ["/scabbard/a/b/c", "/admin/circuits/a", "/authorization/permissions"] {
            assert_eq!(body(path).await, ("application/json".to_owned(), scabbard.clone()));
        }
    }

    #[test]
    fn other_paths_belong_to_sawtooth() {
        for path in ["", "/", "/v10/batches", "/batches", "v1/batches", "/scabbards/a"] {
            assert_eq!(ErrorDialect::of(path), ErrorDialect::Sawtooth, "{path}");
        }
    }
}
