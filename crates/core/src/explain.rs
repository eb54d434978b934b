//! Why a batch or a service waits, and what an operator could do: one rule for every part that shows it.

use std::fmt;

use crate::{
    BatchDetails, BatchState, Obstacle, OperatorVerb, PossibleAction, ServiceId, ServiceOverview,
    StoredBatch, Timestamp, Wait, WaitCause,
};

/// A service that an operator has paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePause {
    /// Since when.
    pub since: Timestamp,
    /// Why, in the operator's words.
    pub reason: String,
}

/// What is known of a service besides its batches.
#[derive(Debug, Clone, Copy)]
pub struct ServiceFacts<'a> {
    /// The service.
    pub service: &'a ServiceOverview,
    /// Set while an operator has paused it.
    pub pause: Option<&'a ServicePause>,
    /// The present time.
    pub now: Timestamp,
}

impl ServiceFacts<'_> {
    /// Why nothing happens in the service now, whatever its batches wait for, in sentences that follow another
    /// one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.service.owner {
            None => f.write_str(" No instance claims its service.")?,
            Some(owner) if owner.instance.lease_ends_at <= self.now => write!(
                f,
                " The instance {} claims its service and has not renewed its lease in time.",
                owner.instance.instance_id
            )?,
            Some(_) => {}
        }
        match self.pause {
            Some(pause) => write!(f, " Its service is paused: {}.", pause.reason),
            None => Ok(()),
        }
    }
}

impl Wait<'_> {
    /// What an operator can do about the batch itself.
    fn own_actions(&self, batch: &StoredBatch) -> Vec<OperatorVerb> {
        let state = batch.progress.state;
        let mut actions = Vec::new();
        if self.cause == WaitCause::Delayed {
            actions.push(OperatorVerb::Retry);
        }
        if batch.held.is_some() {
            actions.push(OperatorVerb::Release);
        }
        if state.awaits_poller() {
            actions.extend([
                OperatorVerb::Resubmit,
                OperatorVerb::EndCommitted,
                OperatorVerb::EndInvalid,
            ]);
        } else if state.awaits_queuer() {
            actions.push(OperatorVerb::Cancel);
        }
        actions
    }
}

/// Why a batch waits, and what an operator could do.
///
/// Its text is one or more sentences.
#[derive(Debug, Clone, Copy)]
pub struct BatchExplanation<'a> {
    details: &'a BatchDetails,
    facts: Option<ServiceFacts<'a>>,
}

impl<'a> BatchExplanation<'a> {
    /// Explains a batch. Without facts, only what is stored of batches is told.
    pub fn new(details: &'a BatchDetails, facts: Option<ServiceFacts<'a>>) -> Self {
        Self { details, facts }
    }

    /// The batch that it waits for, if that has not ended or stops it.
    pub fn blocker(&self) -> Option<&'a StoredBatch> {
        self.details.ahead.as_ref()?.head.as_ref()
    }

    /// What an operator could do: first about the batch, then about the one that it waits for and about its
    /// service.
    pub fn actions(&self) -> Vec<PossibleAction<'a>> {
        let Some(wait) = self.details.wait() else { return Vec::new() };
        let of = |batch: &'a StoredBatch| move |verb| PossibleAction { verb, batch: Some(batch) };
        let batch = &self.details.batch;
        let mut actions: Vec<_> = wait.own_actions(batch).into_iter().map(of(batch)).collect();
        if self.details.of_withdrawal && batch.held.is_none() {
            // Withdrawals are cancelled and retried themselves, not their batches.
            actions.retain(|possible| possible.verb == OperatorVerb::Retry);
        }
        if let Some(ahead) = &self.details.ahead
            && let Some(head) = &ahead.head
        {
            let of_head = match (&ahead.obstacle, wait.of_head()) {
                (Obstacle::Halt { .. }, _) => {
                    vec![OperatorVerb::Continue, OperatorVerb::EndFollowing]
                }
                (_, Some(wait)) => wait.own_actions(head),
                (_, None) => Vec::new(),
            };
            actions.extend(of_head.into_iter().map(of(head)));
        }
        if self.facts.is_some_and(|facts| facts.pause.is_some()) {
            actions.push(PossibleAction { verb: OperatorVerb::Resume, batch: None });
        }
        actions
    }
}

impl fmt::Display for BatchExplanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(wait) = self.details.wait() else { return fmt_end(self.details, f) };
        write!(f, "The batch waits for {wait}.")?;
        match &self.facts {
            Some(facts) => facts.fmt(f),
            None => Ok(()),
        }
    }
}

fn fmt_end(details: &BatchDetails, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if details.batch.progress.state == BatchState::Committed {
        return f.write_str("The batch waits for nothing: the ledger has applied it.");
    }
    f.write_str("The batch waits for nothing: it is invalid")?;
    match details.receipts.first() {
        Some(receipt) => write!(f, ": {}.", receipt.error_message),
        None => f.write_str("."),
    }
}

/// Why a service waits.
///
/// Its text is one or more sentences.
#[derive(Debug, Clone, Copy)]
pub struct ServiceExplanation<'a> {
    facts: ServiceFacts<'a>,
    oldest: Option<&'a BatchDetails>,
}

impl<'a> ServiceExplanation<'a> {
    /// Explains a service by its oldest open batch.
    pub fn new(facts: ServiceFacts<'a>, oldest: Option<&'a BatchDetails>) -> Self {
        Self { facts, oldest }
    }

    /// What an operator could do.
    pub fn actions(&self) -> Vec<PossibleAction<'a>> {
        match self.oldest {
            Some(oldest) => BatchExplanation::new(oldest, Some(self.facts)).actions(),
            None if self.facts.pause.is_some() => {
                vec![PossibleAction { verb: OperatorVerb::Resume, batch: None }]
            }
            None => Vec::new(),
        }
    }
}

impl fmt::Display for ServiceExplanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServiceOverview { service_id, open, under_way, .. } = self.facts.service;
        fmt_counts(f, service_id, *open, *under_way)?;
        if let Some(oldest) = self.oldest
            && let Some(wait) = oldest.wait()
        {
            write!(f, " The oldest one, {:.12}, waits for {wait}.", oldest.batch.batch_id)?;
        }
        if *open > 0 || self.facts.pause.is_some() {
            self.facts.fmt(f)?;
        }
        Ok(())
    }
}

fn fmt_counts(
    f: &mut fmt::Formatter<'_>,
    service_id: &ServiceId,
    open: u64,
    under_way: u64,
) -> fmt::Result {
    match open {
        0 => write!(f, "The service {service_id} waits for nothing: it has no open batches."),
        1 => write!(f, "The service {service_id} has 1 open batch; {under_way} under way."),
        _ => write!(f, "The service {service_id} has {open} open batches; {under_way} under way."),
    }
}

#[cfg(test)]
mod tests;
