use std::time::Duration;

use thiserror::Error;

use crate::evidence::Evidence;
use crate::queue::StrategyKind;

/// What a ledger does with batches, as declared by its adapter.
///
/// The server derives its rules from these facts: which strategies are possible, whether it asks before it sends, when
/// absence counts, when INVALID is final. It never looks at the kind of ledger. If an adapter promises more than the
/// ledger does, the server may apply a batch twice or lose one. In doubt, declare the weaker fact, as in
/// [`weakest`](Self::weakest).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerFacts {
    /// What the ledger does with a batch that it has applied and that arrives again.
    pub second_arrival: SecondArrival,
    /// Whether it can be proved that the ledger does not have a batch.
    pub proves_absence: bool,
    /// For how long a request can be on its way to the ledger, or wait there, after its sender has given up. Zero: a
    /// request that arrives late has no effect.
    pub late_arrival_limit: Duration,
    /// Whether a node that was restarted reports the batches that it had applied before.
    pub statuses_survive_restart: bool,
    /// Whether a node may report a batch as invalid because of an earlier attempt, after the batch has arrived again
    /// but before it is executed again.
    pub reports_earlier_invalid: bool,
    /// Whether batches of one service are applied in the order in which they were sent.
    pub keeps_order: bool,
    /// Whether the ledger executes a transaction only with access to the addresses that it declares.
    pub enforces_declared_access: bool,
    /// Whether a service exists at only one node, so that its batches cannot be sent to another one.
    pub one_node_for_service: bool,
    /// Whether batches have a time or a height after which the ledger cannot apply them. If so, the adapter reports
    /// [`Evidence::Expired`](crate::evidence::Evidence::Expired) when a batch was not applied by then.
    pub batches_expire: bool,
    /// Whether nodes send events about applied batches, and the adapter notices when some may be missing.
    pub has_events: bool,
    /// Whether the nodes of a service can have different states for good, so that they are compared.
    pub compares_states: bool,
    /// Whether nodes report something that identifies their ledger. Otherwise the operator must give it a name.
    pub tells_identity: bool,
    /// Whether nodes report what a client's key may do.
    pub checks_keys: bool,
    /// Whether the adapter creates and signs the batches itself, from withdrawals, and so sets their order. Clients
    /// send none.
    pub signs_batches: bool,
    /// Evidence is searched at the latest when the state of a batch has not changed for this long. `None`: the settings
    /// decide.
    pub quiet_after: Option<Duration>,
}

/// What a ledger does with a batch that it has applied and that arrives again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecondArrival {
    /// Nothing: it stays applied once, and its status stays *committed*.
    AppliedOnce,
    /// It applies the batch again.
    AppliedAgain,
    /// It stays applied once, but the ledger may report it as invalid.
    Refused,
}

/// When the ledger's not having a batch counts as proved, so that the batch is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AbsenceRule {
    /// Never. A batch about which nothing is known is held until an operator decides.
    Never,
    /// When no node reports the batch. A batch that was applied is reported forever. If an earlier attempt arrives
    /// later, the batch is still applied only once.
    Reported,
    /// When no node reports the batch to the instance that sent it and has observed the ledger without a gap since, but
    /// not before the attempt can no longer arrive.
    ObservedBySender,
}

/// Facts that contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LedgerFactsError {
    /// Nothing could prove absence.
    #[error(
        "proves_absence is declared, but nodes forget applied batches when they restart, and have no events: nothing \
         shows whether a batch was applied before the restart; declare that absence cannot be proved"
    )]
    UnprovableAbsence,
    /// Nothing could prove that a batch was not applied before it expired.
    #[error(
        "batches_expire is declared, but nodes forget applied batches when they restart: nothing shows whether a batch \
         was applied before it expired; declare that batches do not expire"
    )]
    UnprovableExpiry,
}

impl LedgerFacts {
    /// The facts of a ledger that promises nothing.
    pub const fn weakest(late_arrival_limit: Duration) -> Self {
        Self {
            second_arrival: SecondArrival::AppliedAgain,
            proves_absence: false,
            late_arrival_limit,
            statuses_survive_restart: false,
            reports_earlier_invalid: true,
            keeps_order: false,
            enforces_declared_access: false,
            one_node_for_service: false,
            batches_expire: false,
            has_events: false,
            compares_states: false,
            tells_identity: false,
            checks_keys: false,
            signs_batches: false,
            quiet_after: None,
        }
    }

    /// Fails if the facts contradict each other.
    pub const fn check(&self) -> Result<(), LedgerFactsError> {
        let sees_commits = self.statuses_survive_restart || self.has_events;
        match self.absence_rule() {
            AbsenceRule::ObservedBySender if !sees_commits => {
                Err(LedgerFactsError::UnprovableAbsence)
            }
            _ if self.batches_expire && !self.statuses_survive_restart => {
                Err(LedgerFactsError::UnprovableExpiry)
            }
            _ => Ok(()),
        }
    }

    /// Whether another attempt of a batch that was applied changes nothing.
    const fn applies_once(&self) -> bool {
        matches!(self.second_arrival, SecondArrival::AppliedOnce)
    }

    /// What the ledger lacks for this strategy; `None` if the strategy is possible.
    pub const fn lacks_for(&self, strategy: StrategyKind) -> Option<&'static str> {
        match strategy {
            StrategyKind::Serial => None,
            _ if self.signs_batches => Some(
                "batches that clients sign: withdrawals are signed ahead in an order of their own",
            ),
            StrategyKind::Parallel if !self.enforces_declared_access => Some(
                "a ledger that executes transactions only with access to the addresses that they declare",
            ),
            StrategyKind::Pipeline if !self.keeps_order => {
                Some("a ledger that applies batches in the order in which they were sent")
            }
            _ => None,
        }
    }

    /// The strategies that are possible.
    pub fn possible_strategies(&self) -> impl Iterator<Item = StrategyKind> + use<> {
        let facts = *self;
        StrategyKind::ALL.into_iter().filter(move |strategy| facts.lacks_for(*strategy).is_none())
    }

    /// The strategy of services for which the settings name none.
    pub const fn usual_strategy(&self) -> StrategyKind {
        match self.lacks_for(StrategyKind::Parallel) {
            None => StrategyKind::Parallel,
            Some(_) => StrategyKind::Serial,
        }
    }

    /// Whether several batches of a service can be under way.
    pub const fn allows_several_batches(&self) -> bool {
        self.lacks_for(StrategyKind::Parallel).is_none()
            || self.lacks_for(StrategyKind::Pipeline).is_none()
    }

    /// Whether an invalid batch can stop those behind it: not if they are signed ahead.
    pub const fn can_halt(&self) -> bool {
        !self.signs_batches
    }

    /// Whether the ledger must be asked about a batch before each POST, because it may have the batch already and
    /// sending it again would not be harmless.
    pub const fn asks_before_sending(&self) -> bool {
        !self.applies_once() || self.reports_earlier_invalid
    }

    /// Whether nodes may lag behind each other. If so, a batch is sent only to a node that has applied the batches
    /// before it, and a batch that one node reports as invalid is invalid only if no other node contradicts it.
    pub const fn nodes_may_lag(&self) -> bool {
        !self.one_node_for_service
    }

    /// When absence counts as proved.
    pub const fn absence_rule(&self) -> AbsenceRule {
        match self.second_arrival {
            _ if !self.proves_absence => AbsenceRule::Never,
            SecondArrival::AppliedOnce if self.statuses_survive_restart => AbsenceRule::Reported,
            _ => AbsenceRule::ObservedBySender,
        }
    }

    /// Whether these facts allow evidence of this kind. An adapter must not report other evidence, which is treated as
    /// inconclusive.
    pub fn admit(&self, evidence: Evidence) -> bool {
        match evidence {
            Evidence::Absent | Evidence::Lost => self.absence_rule() != AbsenceRule::Never,
            Evidence::Repeatable => self.applies_once(),
            Evidence::Expired => self.batches_expire,
            Evidence::Committed
            | Evidence::Present
            | Evidence::StoppedNode
            | Evidence::NeverApplicable
            | Evidence::Inconclusive => true,
        }
    }

    /// How long absence must last to count as proved. `accept_after` is the setting for a ledger for which another
    /// attempt is harmless.
    pub fn absence_counts_after(&self, accept_after: Duration) -> Duration {
        match self.absence_rule() {
            AbsenceRule::Reported => accept_after,
            _ => self.listed_absence_counts_after(accept_after),
        }
    }

    /// The same for a batch of a list that was not answered. If the list arrived after all, and its first batch was
    /// found invalid, that one could be sent again behind the others.
    pub fn listed_absence_counts_after(&self, accept_after: Duration) -> Duration {
        accept_after.max(self.late_arrival_limit)
    }

    /// How long a batch that is reported as invalid stays open because an earlier attempt of it might still arrive and
    /// be applied. INVALID is final at once for a first attempt.
    pub const fn invalid_is_final_after(&self) -> Duration {
        self.late_arrival_limit
    }

    /// How long the state of a batch must be unchanged before evidence is searched. `configured` is the value of the
    /// setting.
    pub fn quiet_after(&self, configured: Duration) -> Duration {
        self.quiet_after.map_or(configured, |longest| configured.min(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(330);
    const SHORT: Duration = Duration::from_secs(30);

    #[test]
    fn weakest_ledger_is_serial_and_proves_nothing() {
        let weakest = LedgerFacts::weakest(LIMIT);
        assert_eq!(weakest.check(), Ok(()));
        assert_eq!(weakest.possible_strategies().collect::<Vec<_>>(), [StrategyKind::Serial]);
        assert!(weakest.asks_before_sending() && weakest.nodes_may_lag());
        assert_eq!(weakest.absence_rule(), AbsenceRule::Never);
        assert_eq!(weakest.absence_counts_after(SHORT), LIMIT);
        assert_eq!(weakest.invalid_is_final_after(), LIMIT);
    }

    #[test]
    fn evidence_needs_a_fact() {
        use Evidence::{Absent, Expired, Lost, Repeatable};
        let weakest = LedgerFacts::weakest(LIMIT);
        let proves =
            LedgerFacts { proves_absence: true, statuses_survive_restart: true, ..weakest };
        let once = LedgerFacts { second_arrival: SecondArrival::AppliedOnce, ..weakest };
        let expires = LedgerFacts { batches_expire: true, ..weakest };
        for (evidence, facts) in
            [(Absent, proves), (Lost, proves), (Repeatable, once), (Expired, expires)]
        {
            let admit = |facts: LedgerFacts| facts.admit(evidence);
            assert!(admit(facts) && !admit(weakest), "{evidence:?}");
        }
        assert!(weakest.admit(Evidence::Committed) && weakest.admit(Evidence::StoppedNode));
    }

    #[test]
    fn each_strategy_needs_a_fact() {
        let strategies = |facts: LedgerFacts| facts.possible_strategies().collect::<Vec<_>>();
        let weakest = LedgerFacts::weakest(LIMIT);
        let parallel = LedgerFacts { enforces_declared_access: true, ..weakest };
        let pipeline = LedgerFacts { keeps_order: true, ..weakest };
        assert_eq!(strategies(parallel), [StrategyKind::Serial, StrategyKind::Parallel]);
        assert_eq!(strategies(pipeline), [StrategyKind::Serial, StrategyKind::Pipeline]);
        assert_eq!(parallel.usual_strategy(), StrategyKind::Parallel);
        assert_eq!(pipeline.usual_strategy(), StrategyKind::Serial);
        let both = LedgerFacts { keeps_order: true, ..parallel };
        assert_eq!(strategies(both), StrategyKind::ALL);
        let signs = LedgerFacts { signs_batches: true, ..both };
        assert_eq!(strategies(signs), [StrategyKind::Serial]);
        assert!(both.can_halt() && both.allows_several_batches());
        assert!(!signs.can_halt() && !signs.allows_several_batches());
    }

    #[test]
    fn absence_counts_as_the_second_arrival_is_harmless() {
        let weakest = LedgerFacts { proves_absence: true, ..LedgerFacts::weakest(LIMIT) };
        let once = LedgerFacts {
            second_arrival: SecondArrival::AppliedOnce,
            statuses_survive_restart: true,
            ..weakest
        };
        assert_eq!(once.absence_rule(), AbsenceRule::Reported);
        assert_eq!(once.absence_counts_after(SHORT), SHORT);
        assert_eq!(once.listed_absence_counts_after(SHORT), LIMIT);
        for second_arrival in
            [SecondArrival::AppliedAgain, SecondArrival::Refused, SecondArrival::AppliedOnce]
        {
            let facts = LedgerFacts { second_arrival, has_events: true, ..weakest };
            assert_eq!(facts.absence_rule(), AbsenceRule::ObservedBySender);
            assert_eq!(facts.absence_counts_after(SHORT), LIMIT);
            assert_eq!(facts.check(), Ok(()));
            let unseen = LedgerFacts { has_events: false, ..facts };
            assert_eq!(unseen.check(), Err(LedgerFactsError::UnprovableAbsence));
        }
    }

    #[test]
    fn expiry_needs_a_ledger_that_remembers_commits() {
        let expires = LedgerFacts { batches_expire: true, ..LedgerFacts::weakest(LIMIT) };
        assert_eq!(expires.check(), Err(LedgerFactsError::UnprovableExpiry));
        assert_eq!(LedgerFacts { statuses_survive_restart: true, ..expires }.check(), Ok(()));
    }

    #[test]
    fn ledger_is_asked_unless_another_attempt_is_harmless() {
        let once = LedgerFacts {
            second_arrival: SecondArrival::AppliedOnce,
            reports_earlier_invalid: false,
            ..LedgerFacts::weakest(LIMIT)
        };
        assert!(!once.asks_before_sending());
        assert!(LedgerFacts { reports_earlier_invalid: true, ..once }.asks_before_sending());
        let refused = LedgerFacts { second_arrival: SecondArrival::Refused, ..once };
        assert!(refused.asks_before_sending());
    }

    #[test]
    fn evidence_is_searched_after_the_shorter_time() {
        let facts = LedgerFacts { quiet_after: Some(SHORT), ..LedgerFacts::weakest(LIMIT) };
        assert_eq!(facts.quiet_after(LIMIT), SHORT);
        assert_eq!(facts.quiet_after(SHORT / 2), SHORT / 2);
        assert_eq!(LedgerFacts::weakest(LIMIT).quiet_after(LIMIT), LIMIT);
    }
}
