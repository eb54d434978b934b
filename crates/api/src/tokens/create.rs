use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use grid_batch_core::tokens::{AccessScope, NewToken};
use grid_batch_support::ServicePattern;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{TokenContext, error::TokenRequestError, json::TokenJson};
use crate::{
    AccessToken,
    access::Caller,
    http::{ApiError, NoParams, Problems, Time, parse_value, random_failed, read_params},
};

/// The longest name, in bytes.
const LONGEST_NAME: usize = 100;
/// The longest list of services.
const MOST_SERVICES: usize = 100;
/// The longest list of what it may send.
const MOST_RULES: usize = 100;

/// A new token, with its secret, which is shown only once.
#[derive(Serialize, ToSchema)]
pub(super) struct CreatedTokenJson {
    #[serde(flatten)]
    described: TokenJson,
    /// What its client sends. Not of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

/// The body of `POST /v1/tokens`.
#[derive(Deserialize, ToSchema)]
struct TokenRequest {
    /// What people call it, such as the name of the program that has it.
    name: String,
    /// `submit`, `read` and `operate`.
    scopes: Vec<String>,
    /// Services for which it is, with `*` for any characters; default: all.
    services: Option<Vec<String>>,
    /// What it may send from accounts with `POST /v1/transactions`, in the words of `gas_admins.*.may_send`; default:
    /// what the accounts may.
    may_send: Option<Vec<String>>,
    /// Until when; default: for ever.
    #[schema(value_type = Option<String>)]
    expires_at: Option<Time>,
    /// Why, for the log.
    reason: String,
    /// Says what would be created, and creates nothing.
    dry_run: Option<bool>,
}

/// `POST /v1/tokens`.
#[utoipa::path(
    post, path = "/v1/tokens", tag = "tokens", operation_id = "createToken", summary = "Create an access token",
    request_body(content = TokenRequest),
    responses(
        (status = 200, description = "Of a dry run: the token that would be created", body = CreatedTokenJson),
        (status = 201, description = "The token, which is shown only once", body = CreatedTokenJson),
        Problems,
    ),
)]
pub(super) async fn post(
    State(context): State<Arc<TokenContext>>,
    request: Request,
) -> Result<(StatusCode, Json<CreatedTokenJson>), ApiError> {
    let (request, body): (_, TokenRequest) = context.api.read_json(request).await?;
    let NoParams {} = read_params(&request)?;
    let secret = AccessToken::generate().map_err(random_failed)?;
    let asked = context.api.actors.request(&request, body.reason, body.dry_run)?;
    let new = NewToken {
        id: secret.id(),
        name: parse_name(body.name)?,
        secret_hash: secret.secret_hash(),
        scopes: parse_scopes(&body.scopes)?,
        services: parse_services(body.services.unwrap_or_default())?,
        may_send: parse_may_send(&context, body.may_send.unwrap_or_default())?,
        expires_at: body.expires_at.map(|Time(time)| time),
    };
    if context.api.actors.command_user.is_none() {
        Caller::of(&request)?.check_grants(&new.scopes)?;
    }
    let (described, dry_run) = (TokenJson::new(&new), asked.dry_run);
    let name = new.name.clone();
    if !context.store.write(move |store| store.create_token(&new, &asked)).await? {
        return Err(TokenRequestError::NameInUse(name).into());
    }
    if dry_run {
        return Ok((StatusCode::OK, Json(CreatedTokenJson { described, token: None })));
    }
    let token = Some(secret.secret());
    Ok((StatusCode::CREATED, Json(CreatedTokenJson { described, token })))
}

fn parse_name(name: String) -> Result<String, ApiError> {
    let is_printable = !name.is_empty() && !name.contains(char::is_control);
    if is_printable && name.len() <= LONGEST_NAME && name.trim() == name {
        return Ok(name);
    }
    let rule = format!(
        "it must have 1 to {LONGEST_NAME} bytes, no control characters, and no space at either end"
    );
    Err(ApiError::invalid_value("name", rule))
}

fn parse_scopes(scopes: &[String]) -> Result<BTreeSet<AccessScope>, ApiError> {
    if scopes.is_empty() {
        return Err(ApiError::invalid_value("scopes", "it must name submit, read or operate"));
    }
    scopes.iter().map(|scope| parse_value("scopes", scope)).collect()
}

fn parse_services(services: Vec<String>) -> Result<Vec<String>, ApiError> {
    if services.is_empty() {
        return Ok(vec!["*".to_owned()]);
    }
    if services.len() > MOST_SERVICES {
        let rule = format!("it has more than {MOST_SERVICES} services; leave it out for all");
        return Err(ApiError::invalid_value("services", rule));
    }
    for service in &services {
        parse_value::<ServicePattern>("services", service)?;
    }
    Ok(services)
}

fn parse_may_send(context: &TokenContext, rules: Vec<String>) -> Result<Vec<String>, ApiError> {
    let invalid = |rule| ApiError::invalid_value("may_send", rule);
    if rules.is_empty() {
        return Ok(rules);
    }
    if rules.len() > MOST_RULES {
        return Err(invalid(format!("it has more than {MOST_RULES} rules")));
    }
    let no_accounts = || invalid("this server has no accounts that send transactions".to_owned());
    let calls = context.calls.as_deref().ok_or_else(no_accounts)?;
    calls.check_token_rules(&rules).map_err(invalid)?;
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_printable() {
        assert!(parse_name("the ci".to_owned()).is_ok());
        for text in ["", " ci", "ci\n", &"x".repeat(101)] {
            assert!(parse_name(text.to_owned()).is_err(), "{text:?}");
        }
    }
}
