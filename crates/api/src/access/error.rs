use std::time::Duration;

use grid_batch_core::tokens::AccessScope;
use grid_batch_core::{Excerpt, ServiceId};

use crate::http::refusals;

refusals! {
    /// A client is not authenticated, or may not do what it asks for.
    pub(crate) enum AccessError {
        #[error(
            "a token is needed: send it in the header Authorization: Bearer TOKEN; the operator creates one with \
             `grid-batch token create --name NAME --scope submit,read --reason TEXT`"
        )]
        [UNAUTHORIZED, 1090, "Not Authenticated"]
        NotAuthenticated,
        #[error(
            "the token is invalid: it is unknown, was revoked, has expired or cannot be read; ask the \
             operator for a new one"
        )]
        [UNAUTHORIZED, 1091, "Invalid Token"]
        InvalidToken,
        #[error(
            "Client is not authorized: send the token of a key that the node accepts, in the header \
             Authorization: Bearer Cylinder:TOKEN, as clients of Splinter and `grid-batch submit FILE --key FILE` do"
        )]
        [UNAUTHORIZED, 1097, "Key Missing"]
        NoLedgerKey,
        #[error("Client is not authorized: the node of the service does not accept its key")]
        [UNAUTHORIZED, 1098, "Key Refused"]
        KeyRefused,
        #[error(
            "the node of the service cannot be asked now whether it accepts the key; try again later"
        )]
        [SERVICE_UNAVAILABLE, 1099, "Key Not Checked"]
        KeyNotChecked,
        #[error("too many requests from your address had invalid tokens; try again later")]
        [TOO_MANY_REQUESTS, 1092, "Too Many Invalid Tokens"]
        TooManyWrongTokens(Duration),
        #[error("the token does not have the scope {0}, which this request needs")]
        [FORBIDDEN, 1093, "Scope Missing"]
        MissingScope(AccessScope),
        #[error("the token is not for the service {id}", id = Excerpt::of(.id.as_str()))]
        [FORBIDDEN, 1094, "Service Not Allowed"]
        ServiceOfOthers { id: ServiceId },
        #[error(
            "this request is about all services, and the token is only for some; name one of them in \
             service_id, if the request has it, or use a token for all services"
        )]
        [FORBIDDEN, 1094, "Service Not Allowed"]
        OnlyForAllServices,
        #[error(
            "requests to this server are not authorized, so none creates tokens; use \
             `grid-batch token create --name NAME --scope read --reason TEXT --database URL`"
        )]
        [FORBIDDEN, 1093, "Scope Missing"]
        NoTokenToCreateOne,
        #[error("a token that may send only some transactions creates no token; use another one")]
        [FORBIDDEN, 1093, "Scope Missing"]
        LimitedTokenCreatesNone,
    }
    impl {
        fn wait(&self) -> Option<Duration> {
            if let Self::TooManyWrongTokens(wait) = self { Some(*wait) } else { None }
        }

        fn challenge(&self) -> Option<&'static str> {
            match self {
                Self::NotAuthenticated | Self::NoLedgerKey => Some(r#"Bearer realm="grid-batch""#),
                Self::InvalidToken | Self::KeyRefused => {
                    Some(r#"Bearer realm="grid-batch", error="invalid_token""#)
                }
                Self::MissingScope(scope) => Some(match scope {
                    AccessScope::Submit => {
                        r#"Bearer realm="grid-batch", error="insufficient_scope", scope="submit""#
                    }
                    AccessScope::Read => {
                        r#"Bearer realm="grid-batch", error="insufficient_scope", scope="read""#
                    }
                    AccessScope::Operate => {
                        r#"Bearer realm="grid-batch", error="insufficient_scope", scope="operate""#
                    }
                }),
                _ => None,
            }
        }
    }
}
