use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::request::Parts,
    response::Response,
};
use grid_batch_core::Timestamp;
use grid_batch_core::batches::BatchLabel;
use grid_batch_withdrawals::{
    CallError, CallRequest, FunctionCall, PayRequest, Withdrawal, WithdrawalId,
};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::json::CallJson;
use crate::{
    access::Caller,
    http::{
        ApiError, MemoryReservation, NoParams, Problems, RequestError, Time, parse_value,
        read_params,
    },
    withdrawals::{
        UniqueBy, WithdrawalContext, WithdrawalRequestError, enqueue, idempotency_key, random_id,
        refuse_if_new, transaction_id_from_key,
    },
};

/// The longest body. Nodes accept transactions of up to 128 KiB, which are twice as many digits.
const LONGEST_BODY: usize = 320 * 1024;

/// The body of `POST /v1/transactions`.
#[derive(Deserialize, ToSchema)]
pub(crate) struct TransactionRequest {
    /// The account that sends it: its name in the settings, its address or its service.
    account: String,
    /// The address that is called or paid. Without it, a contract is created from the data.
    to: Option<String>,
    /// How much is transferred, in wei; by default nothing.
    value: Option<String>,
    /// The data of the call, or the code of the new contract.
    data: Option<String>,
    /// The function to call, in the place of `data`.
    call: Option<FunctionCallFields>,
    /// A payment, in the place of `to`, `value`, `data` and `call`.
    pay: Option<PayFields>,
    /// The gas limit; by default it is estimated.
    gas_limit: Option<u64>,
    /// The highest gas price, in gwei.
    maximum_gas_price: Option<String>,
    /// It fails if nothing has been signed for it at this time.
    #[schema(value_type = Option<String>)]
    deadline: Option<Time>,
    /// A note for people: 1 to 255 characters.
    label: Option<String>,
    /// The events and errors that its result is decoded with, as Solidity declares them.
    abi: Option<Vec<String>>,
}

/// A function of a contract with its arguments.
#[derive(Deserialize, ToSchema)]
struct FunctionCallFields {
    /// The function, such as `transfer(address,uint256)`.
    signature: String,
    /// Its arguments: texts, numbers, booleans, and arrays of them.
    arguments: Vec<Value>,
}

/// A payment.
#[derive(Deserialize, ToSchema)]
struct PayFields {
    /// The address that is paid.
    to: String,
    /// The amount, in the smallest unit.
    amount: String,
    /// The address of an ERC-20 token; by default the chain's coins are paid.
    token: Option<String>,
}

/// `POST /v1/transactions`.
#[utoipa::path(
    post, path = "/v1/transactions", tag = "transactions", operation_id = "sendTransaction", summary = "Send a transaction of an account",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Marks a repetition of the request"),
        ("traceparent" = Option<String>, Header, description = "The trace that the request belongs to"),
    ),
    request_body(content = TransactionRequest, content_type = "application/json"),
    responses(
        (status = 202, description = "The transaction", body = CallJson),
        Problems,
    ),
)]
pub(super) async fn post(
    State(context): State<Arc<WithdrawalContext>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (request, body, _reservation) = read_body(&context, request).await?;
    let NoParams {} = read_params(&request)?;
    let account = context.parse_account(&body.account)?;
    let idempotency_key = idempotency_key(&request.headers, None)?;
    let id = match &idempotency_key {
        Some(key) => transaction_id_from_key(&account, key),
        None => WithdrawalId::from_bytes(random_id()?),
    };
    let requested = body.into_call_request()?;
    check_deadline(&context, id, requested.deadline).await?;
    let invalid = |CallError { field, rule }| ApiError::invalid_value(field, rule);
    let rules = context.call_rules()?;
    let mut call = rules.call(&account, &requested).map_err(invalid)?;
    match rules.day_limits(&account, &Caller::of(&request)?.token_rules(), &call) {
        Ok(limits) => call.day_limits = limits,
        Err(rule) => {
            let refusal = WithdrawalRequestError::TransactionNotAllowed { rule };
            refuse_if_new(&context, id, refusal.into()).await?;
        }
    }
    let transaction = Withdrawal::of_call(id, account, call, idempotency_key);
    enqueue::<CallJson>(&context, &request, transaction, UniqueBy::Key).await
}

async fn read_body(
    context: &WithdrawalContext,
    request: Request,
) -> Result<(Parts, TransactionRequest, MemoryReservation), ApiError> {
    let read = context.api.read_long_json(request, LONGEST_BODY).await;
    read.map_err(|error| match error.get() {
        Some(&RequestError::BodyTooLong { limit }) => {
            WithdrawalRequestError::TransactionTooLong { limit }.into()
        }
        _ => error,
    })
}

impl TransactionRequest {
    fn into_call_request(self) -> Result<CallRequest, ApiError> {
        let label = self.label.map(|text| parse_value::<BatchLabel>("label", &text)).transpose()?;
        let function =
            |FunctionCallFields { signature, arguments }| FunctionCall { signature, arguments };
        let pay = |PayFields { to, amount, token }| PayRequest { to, amount, token };
        Ok(CallRequest {
            to: self.to,
            value: self.value,
            data: self.data,
            function: self.call.map(function),
            pay: self.pay.map(pay),
            gas_limit: self.gas_limit,
            maximum_gas_price: self.maximum_gas_price,
            deadline: self.deadline.map(|Time(time)| time),
            label: label.map(|label| label.to_string()),
            abi: self.abi.unwrap_or_default(),
        })
    }
}

/// Refuses a new transaction that could never be signed.
async fn check_deadline(
    context: &WithdrawalContext,
    id: WithdrawalId,
    deadline: Option<Timestamp>,
) -> Result<(), ApiError> {
    let now = context.api.clock.now();
    if deadline.is_none_or(|deadline| deadline > now) {
        return Ok(());
    }
    let rule = format!("it must be later than now, {}", now.rfc3339_micros());
    refuse_if_new(context, id, ApiError::invalid_value("deadline", rule)).await
}
