use std::{collections::HashMap, time::Duration};

use grid_batch_core::Timestamp;
use grid_batch_withdrawals::{NonceUse, Terms, UnpaidWithdrawal};

use super::found_use::{FoundUse, UseKind};

/// How far the clock of the database may be ahead of the chain's. A transaction may thus have paid a withdrawal that
/// was scheduled up to this long after the transaction was mined.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// Why it cannot be decided what a transaction did.
const PAID_OTHERWISE: &str = "a pool made a withdrawal in it, but its call cannot be read";

/// The withdrawals that a transaction may have paid.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// The withdrawals that are not known to be paid, in their order.
    pub(super) by_terms: HashMap<Terms, Vec<UnpaidWithdrawal>>,
    /// When the first open withdrawal was scheduled. `None`: there is none that could have been cancelled.
    pub(super) next_scheduled_at: Option<Timestamp>,
}

/// What each nonce was used for. `found` is ordered by nonce.
///
/// If several withdrawals have equal terms, the first one is paid by the first transaction. A refused transaction is
/// assigned to a withdrawal only if there are more withdrawals than payments.
pub(super) fn match_uses(found: &[FoundUse], candidates: &Candidates) -> Vec<(u64, NonceUse)> {
    let mut groups: HashMap<&Terms, TermsGroup<'_>> = HashMap::new();
    for (terms, withdrawals) in &candidates.by_terms {
        groups.insert(terms, TermsGroup::new(terms, withdrawals, found));
    }
    let uses = found.iter().map(|found| {
        let nonce_use = match &found.kind {
            UseKind::Own { terms, pays_otherwise, .. } => match (groups.get_mut(terms), terms) {
                (Some(group), Terms::Withdrawal { .. }) => group.settle(found),
                (Some(group), Terms::Call { .. }) if !group.withdrawals.is_empty() => {
                    group.settle(found)
                }
                (None, Terms::Withdrawal { .. }) => {
                    elsewhere(found, "it makes a withdrawal that is not stored")
                }
                (_, Terms::Call { .. }) if *pays_otherwise => undecided(found, PAID_OTHERWISE),
                (_, Terms::Call { .. }) => elsewhere(found, "it does not call a pool"),
            },
            UseKind::UnknownPayment => undecided(found, PAID_OTHERWISE),
            UseKind::Filler
                if candidates.next_scheduled_at.is_some_and(|time| is_before(time, found)) =>
            {
                undecided(
                    found,
                    "it is empty, as if it cancelled a withdrawal whose cancellation is not stored",
                )
            }
            UseKind::Filler => elsewhere(found, "it is empty"),
            UseKind::Other => elsewhere(found, "it does not call a pool"),
            UseKind::NotShown => undecided(found, "no node shows the transaction"),
        };
        (found.nonce, nonce_use)
    });
    uses.collect()
}

/// The withdrawals with the same terms, and the number of transactions that are left for them.
struct TermsGroup<'a> {
    withdrawals: &'a [UnpaidWithdrawal],
    /// Which of the withdrawals have a transaction.
    taken: Vec<bool>,
    payments_left: usize,
}

impl<'a> TermsGroup<'a> {
    fn new(terms: &Terms, withdrawals: &'a [UnpaidWithdrawal], found: &[FoundUse]) -> Self {
        let is_payment = |found: &&FoundUse| {
            matches!(&found.kind, UseKind::Own { terms: of, succeeded: true, .. } if of == terms)
                && !withdrawals.iter().any(|it| it.nonce == Some(found.nonce))
        };
        let payments_left = found.iter().filter(is_payment).count();
        Self { withdrawals, taken: vec![false; withdrawals.len()], payments_left }
    }

    fn settle(&mut self, found: &FoundUse) -> NonceUse {
        let UseKind::Own { terms, succeeded, signed, .. } = &found.kind else {
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
            _ if !succeeded => elsewhere(found, failed(terms)),
            // It paid a withdrawal that failed or, if a request was repeated, one that was scheduled later.
            _ if self.taken.contains(&false) => undecided(found, equals_other(terms)),
            _ => elsewhere(found, not_stored(terms)),
        }
    }
}

fn failed(terms: &Terms) -> &'static str {
    match terms {
        Terms::Withdrawal { .. } => "the pool refused it",
        Terms::Call { .. } => "it failed",
    }
}

fn not_stored(terms: &Terms) -> &'static str {
    match terms {
        Terms::Withdrawal { .. } => "it makes a withdrawal that is not stored",
        Terms::Call { .. } => "it does the same as a transaction that another one has executed",
    }
}

fn equals_other(terms: &Terms) -> &'static str {
    match terms {
        Terms::Withdrawal { .. } => {
            "it makes a withdrawal with the terms of one that is stored as failed, or was \
             scheduled later"
        }
        Terms::Call { .. } => {
            "it does the same as a transaction that is stored as failed, or was requested later"
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

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use grid_batch_withdrawals::{NewSignedTransaction, WithdrawalId};
    use proptest::prelude::*;

    use super::*;

    fn terms() -> Terms {
        let text = ToOwned::to_owned;
        let (pool, beneficiary, amount) = (text("pool"), text("member"), text("5"));
        Terms::Withdrawal { pool, beneficiary, amount }
    }

    fn after(seconds: u64) -> Timestamp {
        Timestamp::default().plus(Duration::from_secs(seconds))
    }

    fn id(number: u8) -> WithdrawalId {
        WithdrawalId::from_bytes([number; 16])
    }

    fn open(number: u8) -> UnpaidWithdrawal {
        UnpaidWithdrawal { id: id(number), created_at: after(0), is_open: true, nonce: None }
    }

    fn found(nonce: u64, kind: UseKind) -> FoundUse {
        FoundUse { nonce, mined: Some((B256::with_last_byte(nonce as u8), after(1_000))), kind }
    }

    fn call(nonce: u64, succeeded: bool) -> FoundUse {
        let hash = [nonce as u8; 32];
        let signed = NewSignedTransaction {
            nonce,
            hash,
            bytes: vec![],
            max_fee: 1,
            tip: 1,
            is_filler: false,
        };
        let kind = UseKind::Own {
            terms: terms(),
            as_call: terms(),
            succeeded,
            signed,
            pays_otherwise: false,
        };
        found(nonce, kind)
    }

    /// What each nonce was used for: the number of a withdrawal, `e`lsewhere, or `u`ndecided.
    fn matched(found: &[FoundUse], withdrawals: &[UnpaidWithdrawal]) -> String {
        let by_terms = [(terms(), withdrawals.to_vec())].into();
        let candidates = Candidates { by_terms, next_scheduled_at: Some(after(0)) };
        let uses =
            match_uses(found, &candidates).into_iter().map(|(_, nonce_use)| match nonce_use {
                NonceUse::Withdrawal { id, .. } => id.as_bytes()[0].to_string(),
                NonceUse::Elsewhere { .. } => "e".to_owned(),
                NonceUse::Undecided { .. } => "u".to_owned(),
            });
        uses.collect()
    }

    /// Calls with the nonces 0, 1 and so on: `s`uccessful or `r`efused.
    fn calls(results: &str) -> Vec<FoundUse> {
        (0..).zip(results.chars()).map(|(nonce, result)| call(nonce, result == 's')).collect()
    }

    #[test]
    fn payments_are_matched_in_order() {
        let all = [open(1), open(2), open(3)];
        for (results, count, expected) in [
            ("s", 1, "1"),
            ("ss", 3, "12"),
            ("ss", 1, "1e"),
            ("s", 0, "e"),
            ("r", 1, "1"),
            ("rs", 1, "e1"),
            ("rs", 2, "12"),
            ("rss", 2, "e12"),
            ("srr", 2, "12e"),
        ] {
            assert_eq!(matched(&calls(results), &all[..count]), expected, "{results} {count}");
        }
    }

    #[test]
    fn own_nonce_decides() {
        let own = UnpaidWithdrawal { nonce: Some(1), is_open: false, ..open(2) };
        assert_eq!(matched(&calls("ss"), &[open(1), own]), "12");
    }

    #[test]
    fn payment_of_an_uncertain_withdrawal_is_undecided() {
        for uncertain in [
            UnpaidWithdrawal { is_open: false, ..open(2) },
            UnpaidWithdrawal { nonce: Some(9), ..open(2) },
            UnpaidWithdrawal { created_at: after(1_061), ..open(2) },
        ] {
            assert_eq!(matched(&calls("s"), std::slice::from_ref(&uncertain)), "u");
            assert_eq!(matched(&calls("ss"), &[open(1), uncertain.clone()]), "1u");
            assert_eq!(matched(&calls("r"), &[uncertain]), "e");
        }
        let in_time = UnpaidWithdrawal { created_at: after(1_060), ..open(2) };
        assert_eq!(matched(&calls("s"), &[in_time]), "2");
    }

    #[test]
    fn other_uses_pay_nothing() {
        let not_shown = FoundUse::not_shown(3);
        let kinds = [UseKind::Other, UseKind::Filler, UseKind::UnknownPayment];
        let uses: Vec<FoundUse> =
            (0..).zip(kinds).map(|(n, kind)| found(n, kind)).chain([not_shown]).collect();
        assert_eq!(matched(&uses, &[open(1)]), "euuu");
        // A filler that was mined before the next withdrawal was scheduled cannot have cancelled an open one.
        let candidates =
            Candidates { next_scheduled_at: Some(after(2_000)), ..Candidates::default() };
        let matched = match_uses(&uses[1..2], &candidates);
        assert!(matches!(matched[..], [(1, NonceUse::Elsewhere { .. })]), "{matched:?}");
    }

    proptest! {
        #[test]
        fn no_withdrawal_is_matched_twice_and_no_payment_is_wasted(
            results in prop::collection::vec(any::<bool>(), 0..8), count in 0_u8..8,
        ) {
            let found: Vec<FoundUse> =
                (0..).zip(&results).map(|(nonce, succeeded)| call(nonce, *succeeded)).collect();
            let withdrawals: Vec<UnpaidWithdrawal> = (1..=count).map(open).collect();
            let matched = matched(&found, &withdrawals);
            let numbers: Vec<char> = matched.chars().filter(char::is_ascii_digit).collect();
            prop_assert!(numbers.is_sorted_by(|a, b| a < b), "{matched}");
            let paid = matched.chars().zip(&results).filter(|(of, paid)| **paid && *of != 'e');
            let payments = results.iter().filter(|paid| **paid).count();
            prop_assert_eq!(paid.count(), payments.min(usize::from(count)), "{}", matched);
        }
    }
}
