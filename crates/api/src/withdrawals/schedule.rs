use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    http::{header::LOCATION, request::Parts},
    response::{IntoResponse, Response},
};
use grid_batch_withdrawals::{
    ScheduleOutcome, Withdrawal, WithdrawalConflict, WithdrawalDetails, WithdrawalId,
    WithdrawalKind,
};

use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    http::{ApiError, WithdrawalProblems, read_trace},
    rate_limits::LimitError,
    withdrawals::{
        Queued, QueuedJson, WithdrawalContext, WithdrawalJson, WithdrawalRequestError,
        derived_ids::{random_id, withdrawal_id_from_key},
        idempotency_key,
        writer::ScheduleAnswer,
    },
};

/// The body of `POST /withdrawals`.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ScheduleRequest {
    /// The address of the pool.
    pool: String,
    /// The address that is paid.
    beneficiary: String,
    /// The amount, in decimal digits.
    amount: String,
    /// Marks a repetition of the request.
    idempotency_key: Option<String>,
}

/// `POST /withdrawals`.
#[utoipa::path(
    post, path = "/withdrawals", tag = "withdrawals", operation_id = "scheduleWithdrawal", summary = "Schedule a withdrawal",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Marks a repetition of the request"),
        ("traceparent" = Option<String>, Header, description = "The trace that the request belongs to"),
    ),
    request_body(content = ScheduleRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "The withdrawal", body = WithdrawalJson),
        WithdrawalProblems,
    ),
)]
pub(crate) async fn post(
    State(context): State<Arc<WithdrawalContext>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (request, body): (_, ScheduleRequest) = context.read_json(request).await?;
    let (pool, service_id) = context.parse_pool(&body.pool)?;
    let beneficiary = context.parse_beneficiary(&body.beneficiary)?;
    let amount = context.parse_amount(&body.amount)?;
    let idempotency_key = idempotency_key(&request.headers, body.idempotency_key)?;
    let id = match &idempotency_key {
        Some(key) => withdrawal_id_from_key(&pool, key),
        None => WithdrawalId::from_bytes(random_id()?),
    };
    let (kind, reward_id) = (WithdrawalKind::Propose, None);
    let withdrawal = Withdrawal {
        id,
        service_id,
        kind,
        reward_id,
        pool,
        beneficiary,
        amount,
        idempotency_key,
        call: None,
        trace: None,
    };
    schedule(&context, &request, withdrawal, UniqueBy::Key).await
}

/// What makes a withdrawal unique. It decides how a request is answered whose withdrawal is stored
/// already.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UniqueBy {
    /// The idempotency key: the same request again gets the stored withdrawal.
    Key,
    /// The member: a second request is refused, unless its idempotency key marks it as a repetition
    /// and it has the same contents.
    Member { may_repeat: bool },
}

/// Schedules a withdrawal, and answers with its present state.
pub(crate) async fn schedule(
    context: &WithdrawalContext,
    request: &Parts,
    withdrawal: Withdrawal,
    unique_by: UniqueBy,
) -> Result<Response, ApiError> {
    check_beneficiary(context, &withdrawal).await?;
    enqueue::<WithdrawalJson>(context, request, withdrawal, unique_by).await
}

/// Schedules one of a kind, which is allowed, and answers with its present state.
pub(crate) async fn enqueue<J: QueuedJson>(
    context: &WithdrawalContext,
    request: &Parts,
    withdrawal: Withdrawal,
    unique_by: UniqueBy,
) -> Result<Response, ApiError> {
    let withdrawal = Withdrawal { trace: read_trace(&request.headers), ..withdrawal };
    let (id, service_id) = (withdrawal.id, withdrawal.service_id.clone());
    let rates = &context.api.rates;
    rates.begin_of_service(&service_id)?;
    let stored = store(context, withdrawal.clone()).await?;
    let link = || context.api.links(request).path(&J::KIND.path(&id));
    let details = match (stored, unique_by) {
        (Ok(ScheduleOutcome::AlreadyStored), UniqueBy::Member { may_repeat: false })
        | (Err(WithdrawalConflict::OtherTerms { .. }), UniqueBy::Member { .. }) => {
            return Err(WithdrawalRequestError::AlreadyPaid { link: link() }.into());
        }
        (Err(WithdrawalConflict::OtherTerms { stored }), UniqueBy::Key) => {
            return Err(conflict(stored, link()).into());
        }
        (Err(refused @ WithdrawalConflict::QueueFull { .. }), _) => {
            let wait = rates.wait_for_place(&service_id);
            return Err(LimitError::GasAdminFull { conflict: Box::new(refused), wait }.into());
        }
        (Err(refused), _) => return Err(refused.into()),
        (Ok(ScheduleOutcome::Stored { created_at, ahead }), _) => {
            rates.stored(&service_id, None, 1);
            WithdrawalDetails::scheduled(withdrawal, created_at, ahead)
        }
        (Ok(ScheduleOutcome::AlreadyStored), _) => read(context, J::KIND, id).await?,
    };
    let location = [(LOCATION, J::KIND.path(&id))];
    let json: J = context.json(&details, &context.api.links(request))?;
    Ok((J::KIND.scheduled_status(), location, Json(json)).into_response())
}

fn conflict(stored: Box<Withdrawal>, link: String) -> WithdrawalRequestError {
    match Queued::of(&stored) {
        Queued::Withdrawal => WithdrawalRequestError::WithdrawalConflict { stored, link },
        Queued::Transaction => WithdrawalRequestError::TransactionConflict { id: stored.id, link },
    }
}

/// Stores a withdrawal, in a commit with others that wait. If the client disconnects, it is stored all
/// the same.
async fn store(
    context: &WithdrawalContext,
    withdrawal: Withdrawal,
) -> Result<ScheduleAnswer, ApiError> {
    let (kind, id) = (Queued::of(&withdrawal), withdrawal.id);
    let not_scheduled = WithdrawalRequestError::NotScheduled { kind, id };
    context.api.database.check()?;
    let slot = context.queue.reserve_slot()?;
    let stored = async { Ok(slot.store(withdrawal).await.ok_or(not_scheduled.clone())?) };
    context.api.database.run(not_scheduled.clone(), stored).await
}

/// Reads a withdrawal that an earlier request has stored.
async fn read(
    context: &WithdrawalContext,
    kind: Queued,
    id: WithdrawalId,
) -> Result<WithdrawalDetails, ApiError> {
    let details = context.store.read(move |store| store.withdrawal(&id)).await;
    Ok(details.ok().flatten().ok_or(WithdrawalRequestError::NotScheduled { kind, id })?)
}

/// Refuses a new withdrawal to a beneficiary that its pool may not pay.
async fn check_beneficiary(
    context: &WithdrawalContext,
    withdrawal: &Withdrawal,
) -> Result<(), ApiError> {
    let Err(rule) = context.rules.may_be_paid(&withdrawal.pool, &withdrawal.beneficiary) else {
        return Ok(());
    };
    let refusal = WithdrawalRequestError::BeneficiaryNotAllowed { rule };
    refuse_if_new(context, withdrawal.id, refusal.into()).await
}

/// Refuses what is new. What is stored already gets its usual answer: it was allowed when it was scheduled.
pub(crate) async fn refuse_if_new(
    context: &WithdrawalContext,
    id: WithdrawalId,
    refusal: ApiError,
) -> Result<(), ApiError> {
    match context.store.read(move |store| store.withdrawal(&id)).await? {
        Some(_) => Ok(()),
        None => Err(refusal),
    }
}
