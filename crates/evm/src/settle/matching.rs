use std::{collections::HashMap, time::Duration};

use grid_batch_core::Timestamp;
use grid_batch_withdrawals::{NonceUse, UnpaidWithdrawal};

use super::found_use::{FoundUse, Terms, UseKind};

/// How far the clock of the database may be ahead of the chain's.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// The withdrawals that a transaction may have paid.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Those that are not known to be paid, in the order in which they are to be made.
    pub(super) by_terms: HashMap<Terms, Vec<UnpaidWithdrawal>>,
    /// When the withdrawal that is next was scheduled.
    pub(super) next_scheduled_at: Timestamp,
}

/// What each nonce was used for. `found` is ordered by nonce.
///
/// Of withdrawals with equal terms, the first one is paid by the first transaction. A refused
/// transaction counts as one withdrawal's only if there are more withdrawals than payments.
pub(super) fn match_uses(found: &[FoundUse], candidates: &Candidates) -> Vec<(u64, NonceUse)> {
    let mut groups: HashMap<&Terms, TermsGroup<'_>> = HashMap::new();
    for (terms, withdrawals) in &candidates.by_terms {
        groups.insert(terms, TermsGroup::new(terms, withdrawals, found));
    }
    let uses = found.iter().map(|found| {
        let nonce_use = match &found.kind {
            UseKind::Call { terms, .. } => match groups.get_mut(terms) {
                Some(group) => group.settle(found),
                None => elsewhere(found, "it makes a withdrawal that is not stored"),
            },
            UseKind::UnknownPayment => {
                undecided(found, "a pool made a withdrawal in it, but its call cannot be read")
            }
            UseKind::Filler if is_before(candidates.next_scheduled_at, found) => undecided(
                found,
                "it is empty, as if it cancelled a withdrawal whose cancellation is not stored",
            ),
            UseKind::Filler => elsewhere(found, "it is empty"),
            UseKind::Other => elsewhere(found, "it does not call a pool"),
            UseKind::NotShown => undecided(found, "no node shows the transaction"),
        };
        (found.nonce, nonce_use)
    });
    uses.collect()
}

/// The withdrawals with the same terms, and how many transactions are left for them.
struct TermsGroup<'a> {
    withdrawals: &'a [UnpaidWithdrawal],
    /// Which of them have a transaction.
    taken: Vec<bool>,
    payments_left: usize,
}

impl<'a> TermsGroup<'a> {
    fn new(terms: &Terms, withdrawals: &'a [UnpaidWithdrawal], found: &[FoundUse]) -> Self {
        let is_payment = |found: &&FoundUse| {
            matches!(&found.kind, UseKind::Call { terms: of, succeeded: true, .. } if of == terms)
                && !withdrawals.iter().any(|it| it.nonce == Some(found.nonce))
        };
        let payments_left = found.iter().filter(is_payment).count();
        Self { withdrawals, taken: vec![false; withdrawals.len()], payments_left }
    }

    fn settle(&mut self, found: &FoundUse) -> NonceUse {
        let UseKind::Call { succeeded, signed, .. } = &found.kind else {
            return undecided(found, "it is not a call");
        };
        let adopt = |withdrawal: &UnpaidWithdrawal| NonceUse::Withdrawal {
            id: withdrawal.id,
            transaction: signed.clone(),
        };
        if let Some(own) = self.withdrawals.iter().find(|it| it.nonce == Some(found.nonce)) {
            return adopt(own);
        }
        let may_be_paid = |index: usize| {
            let withdrawal = &self.withdrawals[index];
            let is_free = withdrawal.is_open && withdrawal.nonce.is_none() && !self.taken[index];
            is_free && is_before(withdrawal.created_at, found)
        };
        let free: Vec<usize> = (0..self.withdrawals.len()).filter(|it| may_be_paid(*it)).collect();
        if *succeeded {
            self.payments_left = self.payments_left.saturating_sub(1);
        }
        match free.first() {
            Some(first) if *succeeded || free.len() > self.payments_left => {
                self.taken[*first] = true;
                adopt(&self.withdrawals[*first])
            }
            _ if !succeeded => elsewhere(found, "the pool refused it"),
            // It paid one that failed, or one that was scheduled later, if a request was repeated.
            _ if self.taken.contains(&false) => undecided(
                found,
                "it makes a withdrawal with the terms of one that is stored as failed, or was \
                 scheduled later",
            ),
            _ => elsewhere(found, "it makes a withdrawal that is not stored"),
        }
    }
}

/// Whether something happened before the transaction was mined.
fn is_before(time: Timestamp, found: &FoundUse) -> bool {
    found.mined.is_none_or(|(_, mined_at)| time <= mined_at.plus(CLOCK_TOLERANCE))
}

fn elsewhere(found: &FoundUse, reason: &str) -> NonceUse {
    let hash = found.mined.map(|(hash, _)| hash.0);
    NonceUse::Elsewhere { hash, note: note(found, reason) }
}

fn undecided(found: &FoundUse, reason: &str) -> NonceUse {
    let hash = found.mined.map(|(hash, _)| hash.0);
    NonceUse::Undecided { hash, note: note(found, reason) }
}

fn note(found: &FoundUse, reason: &str) -> String {
    let nonce = found.nonce;
    match found.mined {
        Some((hash, _)) => {
            format!("nonce {nonce} was used by {hash}, which is not stored: {reason}")
        }
        None => format!("nonce {nonce} was used, and it is not stored by what: {reason}"),
    }
}
