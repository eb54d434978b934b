//! Why a batch or a service waits, and what an operator could do: one rule for all interfaces that show it.

use std::{fmt, iter, time::Duration};

use crate::batches::{BatchState, StoredBatch};
use crate::operators::OperatorVerb;
use crate::queries::{
    ActionTarget, BatchDetails, PossibleAction, ServiceOverview, ServicePause, WaitReason,
};
use crate::queue::Wait;
use crate::{ServiceId, Timestamp};

/// What is known about a service besides its batches.
#[derive(Debug, Clone, Copy)]
pub struct ServiceFacts<'a> {
    /// The service.
    pub service: &'a ServiceOverview,
    /// Set while an operator has paused it.
    pub pause: Option<&'a ServicePause>,
    /// What only the process that works on the service knows, such as nodes that its batches depend on and that do not
    /// answer.
    pub waits: &'a [WaitReason],
    /// The time limits of the search for evidence; `None`: the explanation does not mention the search.
    pub search: Option<SearchLimits>,
    /// The present time.
    pub now: Timestamp,
}

/// How long to wait for a batch that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchLimits {
    /// After this time in its state, evidence is searched for a batch that the ledger reports.
    pub quiet_after: Duration,
    /// A batch without evidence is held after this time in its state.
    pub hold_after: Duration,
    /// A batch that the ledger has and does not end is held after this time in its state.
    pub give_up_after: Duration,
}

impl<'a> ServiceFacts<'a> {
    /// The end of the pause, if an operator has paused the service.
    fn resume(&self) -> Option<PossibleAction<'a>> {
        let pause = self.pause.filter(|pause| pause.operator.is_some())?;
        let target = if pause.of_all {
            ActionTarget::AllServices
        } else {
            ActionTarget::Service(&self.service.service_id)
        };
        Some(PossibleAction { verb: OperatorVerb::Resume, target })
    }

    /// Why nothing happens in the service now, whatever its batches wait for.
    fn waits(&self) -> Vec<WaitReason> {
        let ServiceOverview { owner, open, .. } = self.service;
        if *open == 0 && self.pause.is_none() {
            return Vec::new();
        }
        let lease = match owner.as_ref().map(|owner| &owner.instance) {
            None => Some(WaitReason::Lease { expired: None }),
            Some(instance) if instance.lease_ends_at <= self.now => {
                let expired = Some((instance.instance_id.clone(), instance.lease_ends_at));
                Some(WaitReason::Lease { expired })
            }
            Some(_) => None,
        };
        let paused = self
            .pause
            .map(|pause| WaitReason::Paused { since: pause.since, pause: Some(pause.to_string()) });
        let is_told =
            |reason: &&WaitReason| reason.batch_id().is_none() && reason.sentence().is_some();
        let of_service = self.waits.iter().filter(is_told);
        lease.into_iter().chain(paused).chain(of_service.cloned()).collect()
    }

    /// What only the process knows about one of these batches.
    fn waits_of<'b>(&'b self, batches: &'b [&StoredBatch]) -> impl Iterator<Item = WaitReason> {
        let ids = batches.iter().map(|batch| &batch.batch_id);
        let of = |id| self.waits.iter().filter(move |reason| reason.batch_id() == Some(id));
        ids.flat_map(of).cloned()
    }

    /// Whether all nodes answer. While one does not, decisions about what the ledger did would be guesses.
    fn nodes_answer(&self) -> bool {
        !self.waits.iter().any(|reason| matches!(reason, WaitReason::Node(_)))
    }

    /// Writes a sentence about the evidence that is searched for a batch under way, and about when it is held without
    /// evidence. It follows another sentence.
    fn fmt_search(&self, batch: &StoredBatch, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = batch.progress.state;
        let is_searched =
            state.awaits_poller() && batch.held.is_none() && !batch.progress.invalid_reported;
        let (Some(limits), Some(since), true) = (self.search, batch.since, is_searched) else {
            return Ok(());
        };
        let (attempt, lasted) = (batch.progress.attempts, self.now.since(since));
        let after = |limit: Duration| After(limit.saturating_sub(lasted));
        let (quiet, held) = (after(limits.quiet_after), after(limits.hold_after));
        match (state, quiet.0.is_zero()) {
            (BatchState::InDoubt, _) => write!(
                f,
                " The server asks the ledger for evidence of attempt {attempt}. Without any, the batch is held for an \
                 operator {held}."
            ),
            (_, false) => write!(
                f,
                " If the ledger no longer reports the batch, or has not ended it {quiet}, the server asks for evidence \
                 of attempt {attempt}. Without any, the batch is held for an operator {held}."
            ),
            (_, true) => write!(
                f,
                " The server asks the ledger for evidence of attempt {attempt}. Without any, the batch is held for an \
                 operator {held}; if the ledger has it and does not end it, {}.",
                after(limits.give_up_after)
            ),
        }
    }
}

/// Sentences that follow another one.
fn fmt_sentences(reasons: &[WaitReason], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut sentences = reasons.iter().filter_map(WaitReason::sentence);
    sentences.try_for_each(|sentence| write!(f, " {sentence}."))
}

/// Nodes that do not answer, and the other reasons. Without its nodes, nothing else about a service can change.
fn outages_first(reasons: Vec<WaitReason>) -> (Vec<WaitReason>, Vec<WaitReason>) {
    reasons.into_iter().partition(|reason| matches!(reason, WaitReason::Node(_)))
}

/// Sentences that precede another one.
fn fmt_outages(outages: &[WaitReason], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut sentences = outages.iter().filter_map(WaitReason::sentence);
    sentences.try_for_each(|sentence| write!(f, "{sentence}. "))
}

/// The time until something happens, as a text.
struct After(Duration);

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            0 => f.write_str("soon"),
            seconds @ 1..180 => write!(f, "in {seconds} s"),
            seconds => write!(f, "in {} min", seconds / 60),
        }
    }
}

impl Wait<'_> {
    /// What an operator can do about the batch itself. While a node does not answer, decisions that would guess what
    /// the ledger did are left out.
    fn own_actions(&self, batch: &StoredBatch, nodes_answer: bool) -> Vec<OperatorVerb> {
        let state = batch.progress.state;
        let mut actions = Vec::new();
        if matches!(self.reason, WaitReason::Delayed | WaitReason::Parked) {
            actions.push(OperatorVerb::Retry);
        }
        if batch.held.is_some() {
            actions.push(OperatorVerb::Release);
        }
        if state.awaits_poller() {
            let decisions =
                [OperatorVerb::Resubmit, OperatorVerb::EndCommitted, OperatorVerb::EndInvalid];
            actions.extend(decisions.into_iter().filter(|_| nodes_answer));
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
    /// Explains a batch. Without facts, it uses only what is stored about batches.
    pub fn new(details: &'a BatchDetails, facts: Option<ServiceFacts<'a>>) -> Self {
        Self { details, facts }
    }

    /// The batch that it waits for, if that has not ended or stops it.
    pub fn blocker(&self) -> Option<&'a StoredBatch> {
        self.details.ahead.as_ref()?.head.as_ref()
    }

    /// Further causes: why nothing happens in its service, and its deadline.
    pub fn also(&self) -> Vec<WaitReason> {
        if self.details.batch.progress.state.is_terminal() {
            return Vec::new();
        }
        let deadline = self.details.deadline.map(WaitReason::Deadline);
        let Some(facts) = &self.facts else { return deadline.into_iter().collect() };
        let batches: Vec<_> = iter::once(&self.details.batch).chain(self.blocker()).collect();
        deadline.into_iter().chain(facts.waits_of(&batches)).chain(facts.waits()).collect()
    }

    fn fmt_search(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(facts) = &self.facts else { return Ok(()) };
        facts.fmt_search(self.blocker().unwrap_or(&self.details.batch), f)
    }

    /// What an operator could do: first about the batch, then about the one that it waits for and about its service.
    /// While a node of the ledger does not answer, decisions that would guess what the ledger did are left out.
    pub fn actions(&self) -> Vec<PossibleAction<'a>> {
        let Some(wait) = self.details.wait() else { return Vec::new() };
        let of = |batch: &'a StoredBatch| {
            move |verb| PossibleAction { verb, target: ActionTarget::Batch(batch) }
        };
        let batch = &self.details.batch;
        let nodes_answer = self.facts.is_none_or(|facts| facts.nodes_answer());
        let own = wait.own_actions(batch, nodes_answer);
        let mut actions: Vec<_> = own.into_iter().map(of(batch)).collect();
        if let Some(ahead) = &self.details.ahead
            && let Some(head) = &ahead.head
        {
            let of_head = match (&ahead.reason, wait.of_head()) {
                (WaitReason::Halt { .. }, _) => {
                    vec![OperatorVerb::Continue, OperatorVerb::EndFollowing]
                }
                (_, Some(wait)) => wait.own_actions(head, nodes_answer),
                (_, None) => Vec::new(),
            };
            actions.extend(of_head.into_iter().map(of(head)));
        }
        if self.details.of_withdrawal {
            // Operators cancel or retry a withdrawal itself, not its batches.
            let is_held = |it: &PossibleAction<'_>| it.batch().is_none_or(|it| it.held.is_some());
            actions.retain(|it| it.verb == OperatorVerb::Retry || is_held(it));
        }
        let pause = self.facts.and_then(|facts| facts.pause);
        if pause.is_some_and(|pause| pause.states_differ) {
            // A batch that is sent again could be applied twice at one of the nodes.
            actions.retain(|possible| possible.verb != OperatorVerb::Resubmit);
        }
        actions.extend(self.facts.and_then(|facts| facts.resume()));
        actions
    }
}

impl fmt::Display for BatchExplanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(wait) = self.details.wait() else { return fmt_end(self.details, f) };
        let (outages, others) = outages_first(self.also());
        fmt_outages(&outages, f)?;
        write!(f, "The batch waits for {wait}.")?;
        self.fmt_search(f)?;
        fmt_sentences(&others, f)
    }
}

/// The sentences of an explanation that follow the one about the wait, each after a space: for a text that says in other
/// words what the batch waits for.
#[derive(Debug, Clone, Copy)]
pub struct MoreThanWait<'a>(pub &'a BatchExplanation<'a>);

impl fmt::Display for MoreThanWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(explanation) = self;
        explanation.fmt_search(f)?;
        fmt_sentences(&explanation.also(), f)
    }
}

fn fmt_end(details: &BatchDetails, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if details.batch.progress.state == BatchState::Committed {
        return f.write_str("The batch has ended: the ledger has applied it.");
    }
    f.write_str("The batch has ended: it is invalid.")?;
    match details.receipts.first() {
        Some(receipt) => write!(f, " Reason: {}.", receipt.error_message),
        None => Ok(()),
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

    /// Why nothing happens in the service now, whatever its batches wait for.
    pub fn waits(&self) -> Vec<WaitReason> {
        self.facts.waits()
    }

    /// What an operator could do.
    pub fn actions(&self) -> Vec<PossibleAction<'a>> {
        match self.oldest {
            Some(oldest) => BatchExplanation::new(oldest, Some(self.facts)).actions(),
            None => self.facts.resume().into_iter().collect(),
        }
    }
}

impl fmt::Display for ServiceExplanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServiceOverview { service_id, open, under_way, .. } = self.facts.service;
        let (outages, others) = outages_first(self.facts.waits());
        fmt_outages(&outages, f)?;
        fmt_counts(f, service_id, *open, *under_way)?;
        if let Some(oldest) = self.oldest
            && let Some(wait) = oldest.wait()
        {
            write!(f, " The oldest one, {:.12}, waits for {wait}.", oldest.batch.batch_id)?;
            self.facts.fmt_search(&oldest.batch, f)?;
            let of_batch: Vec<_> = self.facts.waits_of(&[&oldest.batch]).collect();
            fmt_sentences(&of_batch, f)?;
        }
        fmt_sentences(&others, f)
    }
}

fn fmt_counts(
    f: &mut fmt::Formatter<'_>,
    service_id: &ServiceId,
    open: u64,
    under_way: u64,
) -> fmt::Result {
    match open {
        0 => write!(f, "The service {service_id} has no open batches."),
        1 => write!(f, "The service {service_id} has 1 open batch; {under_way} under way."),
        _ => write!(f, "The service {service_id} has {open} open batches; {under_way} under way."),
    }
}

#[cfg(test)]
mod tests;
