//! The forms of error responses in the description of the interface.

use std::collections::BTreeMap;

use utoipa::{
    IntoResponses, ToSchema,
    openapi::{
        Components, ComponentsBuilder, ContentBuilder, Ref, RefOr, Response, ResponseBuilder,
    },
};

use super::dialect::{
    Problem, SawtoothError, SawtoothErrorBody, ScabbardErrorBody, WithdrawalProblem,
};

/// Errors of our own interface.
pub(crate) struct Problems;
/// Errors in the form of Sawtooth's REST API.
pub(crate) struct SawtoothErrors;
/// Errors about withdrawals and rewards.
pub(crate) struct WithdrawalProblems;
/// Errors in the form of Scabbard's REST API.
pub(crate) struct ScabbardErrors;

type Responses = BTreeMap<String, RefOr<Response>>;

impl IntoResponses for Problems {
    fn responses() -> Responses {
        errors::<Problem>("application/problem+json")
    }
}

impl IntoResponses for SawtoothErrors {
    fn responses() -> Responses {
        errors::<SawtoothErrorBody>("application/json")
    }
}

impl IntoResponses for WithdrawalProblems {
    fn responses() -> Responses {
        errors::<WithdrawalProblem>("application/problem+json")
    }
}

impl IntoResponses for ScabbardErrors {
    fn responses() -> Responses {
        errors::<ScabbardErrorBody>("application/json")
    }
}

/// The bodies of all errors.
pub(crate) fn error_schemas() -> Components {
    ComponentsBuilder::new()
        .schema_from::<Problem>()
        .schema_from::<WithdrawalProblem>()
        .schema_from::<SawtoothErrorBody>()
        .schema_from::<SawtoothError>()
        .schema_from::<ScabbardErrorBody>()
        .build()
}

fn errors<T: ToSchema>(content_type: &str) -> Responses {
    let response = |(status, description): (&str, &str)| {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(T::name()))).build();
        let response = ResponseBuilder::new().description(description);
        (status.to_owned(), response.content(content_type, content).build().into())
    };
    [("4XX", "The request is refused"), ("5XX", "Try again later")].map(response).into()
}
