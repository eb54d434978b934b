//! Handles requests to any kind of ledger, with the faults that are switched on.

use std::time::Duration;

use hyper::StatusCode;
use tokio::select;

use crate::{
    Fault, RequestKind,
    corruption::corrupt_statuses,
    request::SimRequest,
    response::{SimReply, SimResponse},
    sim_context::{ConnectionReset, SimContext},
};

pub(crate) async fn handle(
    context: &SimContext,
    boot: u64,
    request: &SimRequest,
) -> Result<SimResponse, ConnectionReset> {
    if !context.wait_for_validator(boot).await? {
        let ledger = &context.state().ledger;
        return Ok(ledger.timed_out().unwrap_or_else(|| ledger.internal_error()));
    }
    let crashes = context.crashes();
    select! {
        biased;
        _ = context.wait_for_crash(crashes) => Ok(context.state().ledger.disconnected()),
        response = handle_by_kind(context, boot, request) => response,
    }
}

async fn handle_by_kind(
    context: &SimContext,
    boot: u64,
    request: &SimRequest,
) -> Result<SimResponse, ConnectionReset> {
    context.wait_until_thawed(boot).await?;
    let kind = context.log_request(request);
    if let Some(status) = context.state().common.faults.other_server() {
        return Ok(SimResponse::page_of_another_server(status));
    }
    match kind {
        RequestKind::Submission => handle_submission(context, boot, request).await,
        RequestKind::Statuses => handle_statuses(context, boot, request).await,
        RequestKind::Other => respond(context, boot, request).await,
    }
}

async fn handle_submission(
    context: &SimContext,
    boot: u64,
    request: &SimRequest,
) -> Result<SimResponse, ConnectionReset> {
    let late_by = context.delay(Fault::LateArrival(Duration::ZERO));
    context.keep_until_late(boot, late_by).await?;
    if context.occurs(Fault::ResetBefore) {
        return Err(ConnectionReset);
    }
    let delay = context.delay(Fault::LateArrival(Duration::ZERO));
    context.sleep(boot, delay).await?;
    let mut response = respond(context, boot, request).await?;
    if response.status != StatusCode::ACCEPTED {
        return Ok(response);
    }
    let delay = context.delay(Fault::LateAnswer(Duration::ZERO));
    context.sleep(boot, delay).await?;
    if context.occurs(Fault::ResetAfter) {
        return Err(ConnectionReset);
    }
    let mut state = context.state();
    if let Some(timed_out) = state.ledger.timed_out()
        && state.common.faults.occurs(Fault::TimedOut)
    {
        response = timed_out;
    }
    Ok(response)
}

async fn handle_statuses(
    context: &SimContext,
    boot: u64,
    request: &SimRequest,
) -> Result<SimResponse, ConnectionReset> {
    if context.occurs(Fault::StatusesReset) {
        return Err(ConnectionReset);
    }
    let response = if context.occurs(Fault::StatusesFail) {
        context.state().ledger.statuses_error()
    } else {
        respond(context, boot, request).await?
    };
    let delay = context.delay(Fault::LateStatuses(Duration::ZERO));
    context.sleep(boot, delay).await?;
    let mut state = context.state();
    let wrong_typed = state.ledger.wrong_typed_statuses();
    Ok(corrupt_statuses(response, wrong_typed, &mut state.common))
}

/// Calls the ledger until it responds. Meanwhile, a waiting client occupies a worker.
async fn respond(
    context: &SimContext,
    boot: u64,
    request: &SimRequest,
) -> Result<SimResponse, ConnectionReset> {
    let _worker = context.workers.acquire().await.map_err(|_| ConnectionReset)?;
    loop {
        match context.respond(boot, request)? {
            SimReply::Response(response) => return Ok(response),
            SimReply::Wait => context.poll_clock().await,
        }
    }
}
