//! How a request is treated, faults included, whatever the kind of ledger.

use std::time::Duration;

use hyper::StatusCode;

use crate::{
    Fault,
    answer::{Answer, Reply},
    ask::Ask,
    ledger::Question,
    shared::{Reset, Shared},
    spoil::spoil,
};

pub(crate) async fn answer(shared: &Shared, life: u64, ask: &Ask) -> Result<Answer, Reset> {
    shared.thawed(life).await?;
    let question = shared.world().ledger.question(ask);
    match question {
        Question::Submission => answer_submission(shared, life, ask).await,
        Question::Statuses => answer_statuses(shared, life, ask).await,
        Question::Other => respond(shared, life, ask).await,
    }
}

async fn answer_submission(shared: &Shared, life: u64, ask: &Ask) -> Result<Answer, Reset> {
    if shared.strikes(Fault::ResetBefore) {
        return Err(Reset);
    }
    let mut answer = respond(shared, life, ask).await?;
    if answer.status != StatusCode::ACCEPTED {
        return Ok(answer);
    }
    let delay = shared.delay(Fault::LateAnswer(Duration::ZERO));
    shared.pause(life, delay).await?;
    if shared.strikes(Fault::ResetAfter) {
        return Err(Reset);
    }
    let mut world = shared.world();
    if let Some(timed_out) = world.ledger.timed_out()
        && world.common.faults.strikes(Fault::TimedOut)
    {
        answer = timed_out;
    }
    Ok(answer)
}

async fn answer_statuses(shared: &Shared, life: u64, ask: &Ask) -> Result<Answer, Reset> {
    if shared.strikes(Fault::StatusesReset) {
        return Err(Reset);
    }
    let answer = if shared.strikes(Fault::StatusesFail) {
        shared.world().ledger.unavailable()
    } else {
        respond(shared, life, ask).await?
    };
    let delay = shared.delay(Fault::LateStatuses(Duration::ZERO));
    shared.pause(life, delay).await?;
    let mut world = shared.world();
    let wrong_typed = world.ledger.wrong_typed();
    Ok(spoil(answer, wrong_typed, &mut world.common))
}

/// Asks the ledger until it has an answer. A client that waits keeps a worker all the while.
async fn respond(shared: &Shared, life: u64, ask: &Ask) -> Result<Answer, Reset> {
    let _worker = shared.workers.acquire().await.map_err(|_| Reset)?;
    loop {
        match shared.respond(life, ask)? {
            Reply::Answer(answer) => return Ok(answer),
            Reply::Wait => shared.look_again().await,
        }
    }
}
