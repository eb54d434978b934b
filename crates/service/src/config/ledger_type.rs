use std::{
    error::Error,
    sync::{Arc, LazyLock},
    time::Duration,
};

use grid_batch_core::{GlobalScopeId, Ledger, LedgerFacts, ScopeId, ScopeIdError, ServiceId};

use super::{ConfigError, layers::Layers};
use crate::LedgerContext;

/// A kind of ledger, by the name that `ledger.kind` has for it. All rules about it follow from its facts.
///
/// ```
/// use grid_batch_core::LedgerFacts;
/// use grid_batch_service::{Config, LedgerType};
///
/// let mine = LedgerType::new(
///     "mine",
///     |settings| LedgerFacts::weakest(settings.late_arrival_limit),
///     |context| Err(format!("nothing listens at {:?}", context.urls()).into()),
/// );
/// let variables = [("GRID_BATCH_LEDGER_KIND".to_owned(), "mine".to_owned())];
/// let config = Config::load_with_ledgers(&[mine], None, variables.into_iter(), Vec::new())?;
/// assert_eq!(config.ledger.kind, Some("mine"));
/// # Ok::<(), grid_batch_service::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct LedgerType {
    pub(crate) name: &'static str,
    facts: fn(&FactSettings) -> LedgerFacts,
    pub(super) check_service_id: fn(&ServiceId) -> Result<(), ScopeIdError>,
    pub(crate) adapter: Adapter,
}

/// How the adapter of a ledger is made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Adapter {
    Sawtooth,
    Scabbard,
    #[cfg(feature = "evm")]
    Evm,
    /// By a program that uses this crate.
    Registered(OpenLedgerFn),
}

/// Makes the adapter of a ledger. After an error the server or the command ends.
pub type OpenLedgerFn =
    fn(&LedgerContext<'_>) -> Result<Arc<dyn Ledger>, Box<dyn Error + Send + Sync>>;

impl LedgerType {
    /// A ledger with this name for `ledger.kind`. `open` makes its adapter when the server starts, and when a
    /// command asks the nodes which ledger they belong to. The facts of the adapter must be those that `facts` returns.
    pub const fn new(
        name: &'static str,
        facts: fn(&FactSettings) -> LedgerFacts,
        open: OpenLedgerFn,
    ) -> Self {
        Self { name, facts, check_service_id: |_| Ok(()), adapter: Adapter::Registered(open) }
    }

    /// What `ledger.kind` says for it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What its ledgers do with batches, with these settings.
    pub fn facts(&self, settings: &FactSettings) -> LedgerFacts {
        (self.facts)(settings)
    }
}

impl LedgerType {
    /// The types of ledgers whose adapters are compiled in.
    pub fn known() -> &'static [Self] {
        KNOWN_LEDGERS
    }
}

/// The settings that facts depend on.
#[derive(Debug, Clone, Copy)]
pub struct FactSettings {
    /// `ledger.keeps_order`.
    pub keeps_order: bool,
    /// `ledger.late_arrival_limit`.
    pub late_arrival_limit: Duration,
    /// `evm.resend_after`.
    pub resend_after: Duration,
}

/// The ledgers whose adapters are compiled in.
pub(super) const KNOWN_LEDGERS: &[LedgerType] = &[
    LedgerType {
        name: "sawtooth",
        facts: |settings| {
            grid_batch_sawtooth::facts(settings.keeps_order, settings.late_arrival_limit)
        },
        check_service_id: |service| GlobalScopeId::from_service_id(service).map(drop),
        adapter: Adapter::Sawtooth,
    },
    LedgerType {
        name: "scabbard",
        facts: |settings| grid_batch_scabbard::facts(settings.late_arrival_limit),
        check_service_id: |_| Ok(()),
        adapter: Adapter::Scabbard,
    },
    #[cfg(feature = "evm")]
    LedgerType {
        name: "evm",
        facts: |settings| grid_batch_evm::facts(settings.resend_after),
        check_service_id: |_| Ok(()),
        adapter: Adapter::Evm,
    },
];

/// The ledgers whose adapters are compiled in only with a feature of the same name.
const OPTIONAL_LEDGERS: &[&str] = &["evm"];

/// What `ledger.kind` must be, if no other ledgers are registered.
pub(crate) static KIND_RULE: LazyLock<String> = LazyLock::new(|| kind_rule(KNOWN_LEDGERS));

fn kind_rule(ledgers: &[LedgerType]) -> String {
    let names: Vec<String> = ledgers.iter().map(|ledger| format!("{:?}", ledger.name)).collect();
    match names.split_last() {
        Some((last, [])) => format!("it must be {last}"),
        Some((last, others)) => format!("it must be {} or {last}", others.join(", ")),
        None => "this build has no adapter".to_owned(),
    }
}

/// The type of ledger that the settings name, and its facts with these settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfiguredType {
    pub(super) ledger: LedgerType,
    pub(super) facts: LedgerFacts,
    settings: FactSettings,
}

impl ConfiguredType {
    /// `None` if `ledger.kind` is not set.
    pub(super) fn from_layers(layers: &Layers) -> Result<Option<Self>, ConfigError> {
        let known = layers.ledgers();
        let registered = known.iter().filter(|it| matches!(it.adapter, Adapter::Registered(_)));
        layers.tables().check_names(registered.map(|ledger| ledger.name))?;
        let name: String = layers.get("ledger.kind")?;
        if name.is_empty() {
            return Ok(None);
        }
        let Some(ledger) = known.iter().find(|ledger| ledger.name == name).copied() else {
            let rule = match OPTIONAL_LEDGERS.contains(&&*name) {
                true => {
                    format!("this build has no adapter for {name}; build it with --features {name}")
                }
                false => kind_rule(known),
            };
            return Err(layers.invalid("ledger.kind", rule));
        };
        let settings = FactSettings {
            keeps_order: layers.get("ledger.keeps_order")?,
            late_arrival_limit: layers.get("ledger.late_arrival_limit")?,
            resend_after: layers.get("evm.resend_after")?,
        };
        let facts = ledger.facts(&settings);
        if let Err(error) = facts.check() {
            return Err(layers.invalid("ledger.kind", error.to_string()));
        }
        Ok(Some(Self { ledger, facts, settings }))
    }

    /// Whether its ledgers keep the order of arrival if the settings say so.
    pub(super) fn may_keep_order(&self) -> bool {
        self.ledger.facts(&FactSettings { keeps_order: true, ..self.settings }).keeps_order
    }
}

#[cfg(test)]
mod tests {
    use std::iter::empty;

    use grid_batch_core::{AbsenceRule, LedgerFacts, Strategy};

    use super::{FactSettings, LedgerType};
    use crate::{Config, Setting};

    /// A ledger that is not known: it promises nothing.
    const MINE: LedgerType = mine(|settings| LedgerFacts::weakest(settings.late_arrival_limit));

    const fn mine(facts: fn(&FactSettings) -> LedgerFacts) -> LedgerType {
        LedgerType::new("mine", facts, |_| Err("it has no adapter".into()))
    }

    fn load(ledgers: &[LedgerType], settings: &[(&str, &str)]) -> Result<Config, String> {
        let flag =
            |(name, text): &(&str, &str)| (Setting::named(name).unwrap(), (*text).to_owned());
        let flags = settings.iter().map(flag).collect();
        let config = Config::load_with_ledgers(ledgers, None, empty(), flags);
        config.map_err(|error| error.to_string())
    }

    fn facts(kind: &str) -> LedgerFacts {
        load(&[], &[("ledger.kind", kind)]).unwrap().ledger.facts.unwrap()
    }

    #[test]
    fn rules_of_known_ledgers_follow_from_their_facts() {
        let [sawtooth, scabbard] = ["sawtooth", "scabbard"].map(facts);
        assert_eq!(sawtooth.usual_strategy(), Strategy::Parallel);
        assert_eq!(scabbard.usual_strategy(), Strategy::Serial);
        assert_eq!(sawtooth.absence_rule(), AbsenceRule::Reported);
        assert_eq!(scabbard.absence_rule(), AbsenceRule::ObservedBySender);
        assert!(sawtooth.asks_before_sending() && scabbard.asks_before_sending());
        assert!(sawtooth.nodes_may_lag() && !scabbard.nodes_may_lag());
        assert_eq!(sawtooth.invalid_is_final_after().as_secs(), 330);
    }

    #[cfg(feature = "evm")]
    #[test]
    fn signed_transaction_is_sent_again_without_asking() {
        let evm = facts("evm");
        assert_eq!(evm.possible_strategies().collect::<Vec<_>>(), [Strategy::Serial]);
        assert_eq!(evm.absence_rule(), AbsenceRule::Reported);
        assert!(!evm.asks_before_sending() && !evm.can_halt());
        assert!(evm.invalid_is_final_after().is_zero());
    }

    #[test]
    fn settings_can_name_a_registered_ledger() {
        let kind = ("ledger.kind", "mine");
        let config = load(&[MINE], &[kind, ("ledger.name", "a")]).unwrap();
        assert_eq!(config.ledger.kind, Some("mine"));
        assert_eq!(config.ledger.facts.unwrap().absence_rule(), AbsenceRule::Never);
        assert!(load(&[MINE], &[kind]).unwrap().ledger.lacks_name());
        let error = load(&[MINE], &[kind, ("ledger.strategy", "pipeline")]).unwrap_err();
        assert!(error.ends_with("ledger.kind is mine: use serial"), "{error}");
        let error = load(&[MINE], &[("ledger.kind", "other")]).unwrap_err();
        assert!(error.ends_with("\"evm\" or \"mine\"") || !cfg!(feature = "evm"), "{error}");
        let error = load(&[], &[kind]).unwrap_err();
        assert!(error.contains("ledger.kind is \"mine\"; it must be \"sawtooth\", "), "{error}");
    }

    #[test]
    fn ledger_whose_facts_contradict_each_other_is_refused() {
        let facts: fn(&_) -> _ =
            |_| LedgerFacts { proves_absence: true, ..LedgerFacts::weakest(Default::default()) };
        let error = load(&[mine(facts)], &[("ledger.kind", "mine")]).unwrap_err();
        assert!(error.contains("proves_absence is declared, but a node forgets"), "{error}");
    }
}
