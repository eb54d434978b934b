use std::{fmt::Display, iter};

use grid_batch_core::batches::{LedgerStatus, Receipt, StatusReport};
use grid_batch_core::{BatchError, BatchResult, ItemId, ScopeId};
use grid_batch_withdrawals::{AssignedNonce, ClosedNonce, NonceOutcome, Payment};
use log::{error, info, warn};

use crate::{
    Evm,
    account::Account,
    action::Action,
    ahead::LookAhead,
    context::EvmContext,
    nonce::{BestObservation, Finality, NonceObservation, final_result},
    price::covers_price,
    scope::AccountScopeId,
    send::above_cap,
    settle::UsedNonce,
    values::GasPrice,
};

/// The status of a withdrawal, and the reason if it failed.
type WithdrawalStatus = (LedgerStatus, Option<String>);

const NOT_REPORTED: WithdrawalStatus = (LedgerStatus::NotReported, None);

/// Reads the statuses of withdrawals from the chain, and stores how they ended.
impl Evm {
    pub(crate) async fn read_statuses(
        &self,
        service_id: &str,
        batch_ids: &[String],
    ) -> BatchResult<Vec<StatusReport>> {
        let scope = parsed(service_id.parse())?;
        let mut reports = Vec::with_capacity(batch_ids.len());
        for batch_id in batch_ids {
            let (status, reason) = self.status(&scope, parsed(batch_id.parse())?).await?;
            let receipt = reason.map(|error_message| Receipt {
                transaction_id: None,
                error_message,
                error_data: Vec::new(),
            });
            let receipts = receipt.into_iter().collect();
            reports.push(StatusReport { batch_id: batch_id.clone(), status, receipts });
        }
        Ok(reports)
    }

    async fn status(
        &self,
        scope: &AccountScopeId,
        batch_id: ItemId,
    ) -> BatchResult<WithdrawalStatus> {
        let payment = self.context.store.payment(scope.service_id(), &batch_id).await?;
        let Some(payment) = payment else { return Ok(NOT_REPORTED) };
        let Some(assigned) = &payment.nonce else { return Ok(NOT_REPORTED) };
        if let Some(outcome) = &assigned.outcome {
            return Ok(of_outcome(outcome, assigned.note.clone()));
        }
        let context = &*self.context;
        let nodes = context.nodes_for(scope.service_id(), &batch_id)?;
        let account = Account { context, nodes: &nodes, scope };
        let BestObservation { node, observation, finality } = account.observe(assigned).await?;
        let look = LookAhead { account, node, payment: &payment, head: assigned };
        match (&observation, finality) {
            (NonceObservation::Mined(mined), Finality::Final) => {
                let action = parsed(Action::for_payment(&payment))?;
                let (account, call) = (scope.address(), payment.call.as_ref());
                let head = final_result(mined, node, account, &action, call).await?;
                let following = look.start(batch_id).await;
                let closed = match &following {
                    Some(following) => look.final_nonces(following).await,
                    None => Vec::new(),
                };
                let status = self.store_final_result(scope, head, closed).await?;
                // This is done last, so that the result does not wait for a slow signer.
                if let Some(following) = &following {
                    look.sign_and_send(following).await;
                }
                return Ok(status);
            }
            (NonceObservation::Mined(_), Finality::Disputed(dispute)) => {
                self.note(scope, assigned, Some(dispute.to_string())).await?;
            }
            (NonceObservation::Mined(mined), Finality::Unconfirmed) => {
                self.note(scope, assigned, Some(mined.note(context.options.confirmations))).await?;
            }
            (NonceObservation::UsedElsewhere, _) => {
                self.close_following(&look, batch_id).await?;
                return self.status_of_used_nonce(account, &payment, assigned).await;
            }
            (NonceObservation::Pending, _) => {
                self.note(scope, assigned, pending_note(context, &payment, assigned)).await?;
            }
            (NonceObservation::NotFound, _) => self.note(scope, assigned, None).await?,
        }
        let is_sent = !matches!(observation, NonceObservation::NotFound);
        if is_sent && let Some(following) = look.start(batch_id).await {
            look.sign_and_send(&following).await;
        }
        Ok(of_observation(&observation))
    }

    /// Stores which of the withdrawals after this one are final. They are mined whatever happens to this one.
    async fn close_following(&self, look: &LookAhead<'_>, batch_id: ItemId) -> BatchResult<()> {
        let Some(following) = look.start(batch_id).await else { return Ok(()) };
        let closed = look.final_nonces(&following).await;
        self.close_nonces(look.account.scope, closed).await
    }

    /// Searches for the transaction that used the nonce when no node shows one of the nonce's own transactions.
    async fn status_of_used_nonce(
        &self,
        account: Account<'_>,
        payment: &Payment,
        assigned: &AssignedNonce,
    ) -> BatchResult<WithdrawalStatus> {
        let (scope, nonce, admin) = (account.scope, assigned.nonce, account.address());
        let Some(hash) = account.find_nonce_user(assigned).await? else {
            let note =
                format!("nonce {nonce} is used, but no node shows a receipt of its transaction");
            self.note(scope, assigned, Some(note)).await?;
            return Ok(NOT_REPORTED);
        };
        if assigned.transactions.iter().any(|ours| ours.signed.hash == hash) {
            // The receipts of the node lag behind its blocks.
            self.note(scope, assigned, None).await?;
            return Ok((LedgerStatus::Pending, None));
        }
        match account.explain_used_nonce(payment, assigned, hash).await? {
            UsedNonce::Own => return Ok((LedgerStatus::Pending, None)),
            UsedNonce::Moved => return Ok(NOT_REPORTED),
            UsedNonce::Foreign | UsedNonce::NotFinal | UsedNonce::Undecided => {}
        }
        let note = format!(
            "nonce {nonce} of {admin} was used by {hash}, which was not signed by this server"
        );
        if assigned.foreign_hash != Some(hash.into()) {
            warn!(service:% = scope, note = note.as_str(); "a transaction that is not stored used an assigned nonce");
            self.context.store.record_foreign_use(scope.service_id(), nonce, hash.into()).await?;
        }
        self.note(scope, assigned, Some(note)).await?;
        Ok(NOT_REPORTED)
    }

    /// Stores a note for operators and clients if it has changed.
    async fn note(
        &self,
        scope: &AccountScopeId,
        assigned: &AssignedNonce,
        note: Option<String>,
    ) -> BatchResult<()> {
        if note == assigned.note {
            return Ok(());
        }
        self.context.store.note(scope.service_id(), assigned.nonce, note).await
    }

    /// Stores how this withdrawal and those after it ended, in one commit.
    async fn store_final_result(
        &self,
        scope: &AccountScopeId,
        head: ClosedNonce,
        following: Vec<ClosedNonce>,
    ) -> BatchResult<WithdrawalStatus> {
        if let Some(number) = self.context.highest_block.take_to_store(self.context.monotonic()) {
            self.context.store.record_highest_block(number).await?;
        }
        let status = match &head.outcome {
            Some(outcome) => of_outcome(outcome, Some(head.note.clone())),
            None => (LedgerStatus::Valid, None),
        };
        let closed: Vec<ClosedNonce> = iter::once(head).chain(following).collect();
        self.close_nonces(scope, closed).await?;
        Ok(status)
    }

    async fn close_nonces(
        &self,
        scope: &AccountScopeId,
        closed: Vec<ClosedNonce>,
    ) -> BatchResult<()> {
        if closed.is_empty() {
            return Ok(());
        }
        self.context.store.close_nonces(scope.service_id(), &closed).await?;
        for ClosedNonce { nonce, note, outcome, .. } in &closed {
            match outcome {
                Some(NonceOutcome::WithoutEvent) => error!(
                    service:% = scope, nonce, note = note.as_str();
                    "an operator has to decide whether a withdrawal was made; `grid-batch nonce` lists it"
                ),
                _ => {
                    info!(service:% = scope, nonce, end = note.as_str(); "the use of a nonce is final")
                }
            }
        }
        Ok(())
    }
}

fn of_observation(observation: &NonceObservation<'_>) -> WithdrawalStatus {
    match observation {
        NonceObservation::Mined(_) => (LedgerStatus::Valid, None),
        NonceObservation::Pending => (LedgerStatus::Pending, None),
        NonceObservation::UsedElsewhere | NonceObservation::NotFound => NOT_REPORTED,
    }
}

fn of_outcome(outcome: &NonceOutcome, note: Option<String>) -> WithdrawalStatus {
    match outcome {
        // Its transaction is applied; the ledger's status does not say what the transaction did.
        NonceOutcome::Withdrawn { .. }
        | NonceOutcome::Executed { .. }
        | NonceOutcome::WithoutEvent => (LedgerStatus::Committed, None),
        NonceOutcome::Reverted | NonceOutcome::Cancelled => (LedgerStatus::Invalid, note),
        NonceOutcome::UsedElsewhere => NOT_REPORTED,
    }
}

/// Why a transaction that nodes have is not mined, if its fee is the reason, or a note that it pays more than the
/// present cap. The price is the one that the sender last read, which it does before it sends a pending transaction
/// again.
fn pending_note(
    context: &EvmContext,
    payment: &Payment,
    assigned: &AssignedNonce,
) -> Option<String> {
    let max_fee = assigned.transactions.iter().map(|it| it.signed.max_fee).max()?;
    if let Some(cap) = context.cap_for(payment).filter(|cap| max_fee > cap.wei()) {
        let above = above_cap(max_fee, cap);
        return Some(format!(
            "its transaction to be mined; it was sent before the cap was lowered: {above}"
        ));
    }
    let within = context.options.resend_after.saturating_mul(2);
    let quote = context.facts.quote(context.monotonic(), within)?;
    (!covers_price(max_fee, &quote)).then(|| {
        format!(
            "its transaction to be mined; the gas price is {}, above the {} that it pays at most",
            GasPrice::from_wei(quote.price),
            GasPrice::from_wei(max_fee)
        )
    })
}

/// A value that the server itself passed in; an error is a bug.
fn parsed<T>(result: Result<T, impl Display>) -> BatchResult<T> {
    result.map_err(|error| BatchError::InternalError(error.to_string()))
}
