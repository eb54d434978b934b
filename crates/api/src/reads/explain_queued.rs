use grid_batch_core::batches::StoredBatch;
use grid_batch_core::queries::{BatchExplanation, MoreThanWait, WaitReason};
use grid_batch_core::{BatchResult, Timestamp};
use grid_batch_withdrawals::{WithdrawalDetails, WithdrawalId, WithdrawalState, WithdrawalStore};

use super::explain_json::ActionJson;
use crate::{
    http::{Links, Time, described_names, json_types},
    withdrawals::{Queued, fail_reason, possible_verbs, waits_for},
};

/// The withdrawal or transaction whose latest batch is explained.
pub(super) struct ExplainedQueued {
    pub(super) kind: Queued,
    details: WithdrawalDetails,
}

described_names! {
    QueuedStateName of WithdrawalState::ALL.into_iter().flat_map(|state| {
        let [withdrawal, transaction] =
            [Queued::Withdrawal, Queued::Transaction].map(|kind| kind.state_name(state));
        [withdrawal].into_iter().chain(Some(transaction).filter(|it| *it != withdrawal))
    }),
}

json_types! {
    /// The withdrawal or transaction whose batch is explained.
    pub(super) struct ExplainedQueuedJson(queued: &ExplainedQueued, links: &Links<'_>) {
        id: String = queued.details.withdrawal.id.to_string(),
        #[schema(inline, value_type = QueuedStateName)]
        state: &'static str = queued.state(),
        waits_for: Option<String> = waits_for(&queued.details),
        fail_reason: Option<String> = fail_reason(&queued.details),
        deadline: Option<Time> = queued.deadline().map(Time),
        link: String = links.path(&queued.kind.path(&queued.details.withdrawal.id)),
    }
}

impl ExplainedQueued {
    /// `None`: the batch is of neither kind, or of an earlier try.
    pub(super) fn read(
        store: &dyn WithdrawalStore,
        batch: &StoredBatch,
    ) -> BatchResult<Option<Self>> {
        let Some((id, generation)) = WithdrawalId::of_batch(&batch.batch_id) else {
            return Ok(None);
        };
        let details = store.withdrawal(&id)?.filter(|it| it.generation == generation);
        Ok(details.map(|details| Self { kind: Queued::of(&details.withdrawal), details }))
    }

    fn state(&self) -> &'static str {
        self.kind.state_name(WithdrawalState::of(&self.details))
    }

    /// Until when something has to be signed for it, if nothing is.
    fn deadline(&self) -> Option<Timestamp> {
        let is_open = !self.details.batch.progress.state.is_terminal();
        let deadline = self.details.withdrawal.call.as_ref()?.deadline?;
        let is_signed = self.details.nonce.as_ref().is_some_and(|it| !it.transactions.is_empty());
        (is_open && !is_signed).then(|| Timestamp::from_micros(deadline))
    }

    /// The explanation in its own words, and in those of its batch if that waits for others.
    pub(super) fn text(
        &self,
        explanation: &BatchExplanation<'_>,
        wait: Option<&WaitReason>,
    ) -> String {
        let Self { kind, details } = self;
        let reason = waits_for(details).or_else(|| fail_reason(details));
        let has_failed = WithdrawalState::of(details) == WithdrawalState::Failed;
        let is = if has_failed { "has" } else { "is" };
        let mut text = format!("The {kind} {is} {}", self.state());
        if let Some(reason) = reason {
            text.push_str(&format!(": {reason}"));
        }
        text.push('.');
        if let Some(deadline) = self.deadline() {
            let time = deadline.rfc3339_micros();
            text.push_str(&format!(" It fails if it is not signed before {time}."));
        }
        match wait {
            None => text,
            Some(WaitReason::Behind) => format!("{text} {explanation}"),
            Some(_) => format!("{text}{}", MoreThanWait(explanation)),
        }
    }

    pub(super) fn actions(&self) -> impl Iterator<Item = ActionJson> {
        let id = self.details.withdrawal.id.to_string();
        let action = move |verb| ActionJson::of_queued(verb, self.kind, id.clone());
        possible_verbs(&self.details).map(action)
    }
}
