use std::{sync::LazyLock, time::Duration};

use grid_batch_core::{GlobalScopeId, LedgerFacts, ScopeId, ScopeIdError, ServiceId};

use super::{ConfigError, layers::Layers};

/// A kind of ledger, by the name that `ledger.kind` has for it. All rules about it follow from its facts.
#[derive(Debug, Clone, Copy)]
pub struct LedgerType {
    /// The name.
    pub name: &'static str,
    /// What its ledgers do with batches.
    pub facts: fn(&FactSettings) -> LedgerFacts,
    /// An error if its ledgers cannot have a service of this id.
    pub check_service_id: fn(&ServiceId) -> Result<(), ScopeIdError>,
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
    },
    LedgerType {
        name: "scabbard",
        facts: |settings| grid_batch_scabbard::facts(settings.late_arrival_limit),
        check_service_id: |_| Ok(()),
    },
    #[cfg(feature = "evm")]
    LedgerType {
        name: "evm",
        facts: |settings| grid_batch_evm::facts(settings.resend_after),
        check_service_id: |_| Ok(()),
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
        let name: String = layers.get("ledger.kind")?;
        if name.is_empty() {
            return Ok(None);
        }
        let known = layers.ledgers();
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
        let facts = (ledger.facts)(&settings);
        if let Err(error) = facts.check() {
            return Err(layers.invalid("ledger.kind", error.to_string()));
        }
        Ok(Some(Self { ledger, facts, settings }))
    }

    /// Whether its ledgers keep the order of arrival if the settings say so.
    pub(super) fn may_keep_order(&self) -> bool {
        (self.ledger.facts)(&FactSettings { keeps_order: true, ..self.settings }).keeps_order
    }
}
