use std::{
    error::Error,
    sync::{Arc, LazyLock},
};

use grid_batch_core::ledger::{Ledger, LedgerFacts};
use grid_batch_core::{ScopeIdError, ServiceId};
use grid_batch_settings::{ConfigError, Origin, Setting, SettingValues};

use super::{LedgerConfig, scheduling::KEEPS_ORDER};
use crate::{BUILT_IN_LEDGERS, BuiltIn, LedgerContext};

/// A kind of ledger, by the name that `ledger.kind` has for it. All rules about it follow from its facts.
///
/// ```
/// use grid_batch_core::ledger::LedgerFacts;
/// use grid_batch_service::{Config, LedgerConfig, LedgerType, settings};
///
/// settings! {
///     struct MySettings in "ledger.mine." {
///         /// Blocks that are left until a deadline.
///         ///
///         /// Raise it if blocks come fast.
///         margin: u32 = number("10").between(1, 1000),
///     }
/// }
///
/// let mine = LedgerType::new(
///     "mine",
///     |settings| Ok(LedgerFacts::weakest(LedgerConfig::read(settings)?.late_arrival_limit)),
///     |context| {
///         let MySettings { margin } = MySettings::read(context.settings())?;
///         Err(format!("nothing listens at {:?}, {margin} blocks are left", context.urls()).into())
///     },
/// )
/// .with_settings(&[MySettings::SETTINGS]);
/// let variables = [("GRID_BATCH_LEDGER_KIND", "mine"), ("GRID_BATCH_LEDGER_MINE_MARGIN", "12")];
/// let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
/// let config = Config::load_with_ledgers(&[mine], None, variables.into_iter(), Vec::new())?;
/// assert_eq!(config.ledger.kind.as_deref(), Some("mine"));
/// # Ok::<(), grid_batch_service::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct LedgerType {
    pub(crate) name: &'static str,
    pub(crate) settings: &'static [&'static [Setting]],
    pub(crate) facts: FactsFn,
    /// Checks the settings of the ledger, also if another kind is configured and one of them is given.
    pub(crate) check_settings: fn(&SettingValues) -> Result<(), ConfigError>,
    pub(crate) check_service_id: fn(&ServiceId) -> Result<(), ScopeIdError>,
    pub(crate) adapter: Adapter,
}

/// How the adapter of a ledger is made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Adapter {
    /// By this crate, over its store.
    #[cfg_attr(
        not(any(feature = "sawtooth", feature = "scabbard", feature = "evm")),
        expect(dead_code, reason = "no adapter is compiled in")
    )]
    BuiltIn(BuiltIn),
    /// By a program that uses this crate.
    Registered(OpenLedgerFn),
}

/// What a ledger does with batches, with these settings.
pub type FactsFn = fn(&SettingValues) -> Result<LedgerFacts, ConfigError>;

/// Makes the adapter of a ledger. After an error the server or the command ends.
pub type OpenLedgerFn =
    fn(&LedgerContext<'_>) -> Result<Arc<dyn Ledger>, Box<dyn Error + Send + Sync>>;

impl LedgerType {
    /// A ledger with this name for `ledger.kind`. `open` makes its adapter when the server starts, and when a
    /// command asks the nodes which ledger they belong to. The facts of the adapter must be those that `facts` returns.
    pub const fn new(name: &'static str, facts: FactsFn, open: OpenLedgerFn) -> Self {
        Self::with_adapter(name, facts, Adapter::Registered(open))
    }

    pub(crate) const fn with_adapter(name: &'static str, facts: FactsFn, adapter: Adapter) -> Self {
        Self {
            name,
            settings: &[],
            facts,
            check_settings: |_| Ok(()),
            check_service_id: |_| Ok(()),
            adapter,
        }
    }

    /// Declares the settings of the ledger, in sections. Their names begin with `ledger.NAME.`: they are the section
    /// `[ledger.NAME]` of the file, and have environment variables and flags like all others.
    #[must_use]
    pub const fn with_settings(self, settings: &'static [&'static [Setting]]) -> Self {
        Self { settings, ..self }
    }

    /// What `ledger.kind` says for it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The settings that it declares.
    pub fn settings(&self) -> impl Iterator<Item = &'static Setting> + Clone + use<> {
        self.settings.iter().copied().flatten()
    }

    /// Whether one of its settings has another value than by default.
    fn has_given(&self, settings: &SettingValues) -> bool {
        let mut given = self.settings().flat_map(|setting| settings.all_of(setting));
        given.any(|given| given.origin != Origin::Default)
    }

    /// What its ledgers do with batches, with these settings.
    pub fn facts(&self, settings: &SettingValues) -> Result<LedgerFacts, ConfigError> {
        (self.facts)(settings)
    }

    /// What `ledger.kind` can be with these registered types, for messages.
    pub fn kinds(registered: &[Self]) -> String {
        let names = Self::known().iter().chain(registered).map(|it| it.name.to_owned());
        alternatives(names).unwrap_or_else(|| "the name of a registered ledger".to_owned())
    }

    /// The types of ledgers whose adapters are compiled in.
    pub const fn known() -> &'static [Self] {
        BUILT_IN_LEDGERS
    }
}

/// The ledgers whose adapters are compiled in only with a feature of the same name.
pub(super) const OPTIONAL_LEDGERS: &[&str] = &["sawtooth", "scabbard", "evm"];

/// Those whose adapters are not compiled in.
pub(super) fn missing_ledgers() -> Vec<&'static str> {
    let is_known = |name: &str| LedgerType::known().iter().any(|ledger| ledger.name == name);
    OPTIONAL_LEDGERS.iter().copied().filter(|name| !is_known(name)).collect()
}

/// What `ledger.kind` must be, if no other ledgers are registered.
pub(crate) static KIND_RULE: LazyLock<String> = LazyLock::new(|| rule_of(LedgerType::known()));

fn rule_of<'a>(ledgers: impl IntoIterator<Item = &'a LedgerType>) -> String {
    let names = ledgers.into_iter().map(|ledger| format!("{:?}", ledger.name));
    alternatives(names).map_or_else(
        || "this build has no adapter".to_owned(),
        |names| format!("it must be {names}"),
    )
}

/// These names as a text, such as `a, b or c`; `None` if there is none.
pub(super) fn alternatives(names: impl Iterator<Item = String>) -> Option<String> {
    let names: Vec<String> = names.collect();
    match names.split_last()? {
        (last, []) => Some(last.clone()),
        (last, others) => Some(format!("{} or {last}", others.join(", "))),
    }
}

/// The type of ledger that the settings name, and its facts with these settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfiguredType {
    pub(super) ledger: LedgerType,
    pub(super) facts: LedgerFacts,
}

impl ConfiguredType {
    /// One of these types, or of those that are compiled in. `None` if `ledger.kind` is not set.
    pub(super) fn from_settings(
        settings: &SettingValues,
        registered: &[LedgerType],
    ) -> Result<Option<Self>, ConfigError> {
        let known = || LedgerType::known().iter().chain(registered);
        let name = settings.get::<Option<String>>(&LedgerConfig::kind)?.unwrap_or_default();
        let is_checked = |ledger: &&LedgerType| ledger.name == name || ledger.has_given(settings);
        known().filter(is_checked).try_for_each(|ledger| (ledger.check_settings)(settings))?;
        if name.is_empty() {
            return Ok(None);
        }
        let Some(ledger) = known().find(|ledger| ledger.name == name).copied() else {
            let rule = if OPTIONAL_LEDGERS.contains(&&*name) {
                format!("this build has no adapter for {name}; build it with --features {name}")
            } else {
                rule_of(known())
            };
            return Err(settings.invalid(&LedgerConfig::kind, rule));
        };
        let facts = ledger.facts(settings)?;
        if let Err(error) = facts.check() {
            return Err(settings.invalid(&LedgerConfig::kind, error.to_string()));
        }
        Ok(Some(Self { ledger, facts }))
    }

    /// Whether its ledgers keep the order of arrival if the settings say so.
    pub(super) fn may_keep_order(&self) -> bool {
        self.ledger.settings().any(|setting| setting.name == KEEPS_ORDER)
    }
}

#[cfg(test)]
mod tests {
    use std::iter::empty;

    use grid_batch_core::ledger::{AbsenceRule, LedgerFacts};
    use grid_batch_core::queue::StrategyKind;

    use super::{FactsFn, LedgerType};
    use crate::{Config, LedgerConfig, Setting, settings};

    /// A ledger that is not known: it promises nothing.
    const MINE: LedgerType =
        mine(|values| Ok(LedgerFacts::weakest(LedgerConfig::read(values)?.late_arrival_limit)));

    const fn mine(facts: FactsFn) -> LedgerType {
        LedgerType::new("mine", facts, |_| Err("it has no adapter".into()))
    }

    fn load(ledgers: &[LedgerType], settings: &[(&str, &str)]) -> Result<Config, String> {
        let flag = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let flags = settings.iter().map(flag).collect();
        let config = Config::load_with_ledgers(ledgers, None, empty(), flags);
        config.map_err(|error| error.to_string())
    }

    fn facts(kind: &str) -> LedgerFacts {
        load(&[], &[("ledger.kind", kind)]).unwrap().facts().unwrap()
    }

    #[test]
    fn rules_of_known_ledgers_follow_from_their_facts() {
        let [sawtooth, scabbard] = ["sawtooth", "scabbard"].map(facts);
        assert_eq!(sawtooth.usual_strategy(), StrategyKind::Parallel);
        assert_eq!(scabbard.usual_strategy(), StrategyKind::Serial);
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
        assert_eq!(evm.possible_strategies().collect::<Vec<_>>(), [StrategyKind::Serial]);
        assert_eq!(evm.absence_rule(), AbsenceRule::Reported);
        assert!(!evm.asks_before_sending() && !evm.can_halt());
        assert!(evm.invalid_is_final_after().is_zero());
    }

    #[cfg(not(feature = "evm"))]
    #[test]
    fn settings_of_a_ledger_without_an_adapter_name_the_feature() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.toml");
        let rule = "because this build has no adapter for evm; build it with --features evm";
        std::fs::write(&file, "[evm]\nchain_id = 1\n").unwrap();
        let error = Config::load(Some(&file), empty(), Vec::new()).unwrap_err().to_string();
        assert!(error.ends_with(&format!("there is no setting evm.chain_id, {rule}")), "{error}");
        let variable = ("GRID_BATCH_EVM_CHAIN_ID".to_owned(), "1".to_owned());
        let error = Config::load(None, [variable].into_iter(), Vec::new()).unwrap_err().to_string();
        assert!(error.ends_with(&format!("setting GRID_BATCH_EVM_CHAIN_ID, {rule}")), "{error}");
    }

    #[test]
    fn settings_can_name_a_registered_ledger() {
        let kind = ("ledger.kind", "mine");
        let config = load(&[MINE], &[kind, ("ledger.name", "a")]).unwrap();
        assert_eq!(config.ledger.kind.as_deref(), Some("mine"));
        assert_eq!(config.facts().unwrap().absence_rule(), AbsenceRule::Never);
        assert!(load(&[MINE], &[kind]).unwrap().lacks_ledger_name());
        let error = load(&[MINE], &[kind, ("services.*.strategy", "pipeline")]).unwrap_err();
        assert!(error.ends_with("ledger.kind is mine: use serial"), "{error}");
        let error = load(&[MINE], &[("ledger.kind", "other")]).unwrap_err();
        assert!(error.ends_with("\"evm\" or \"mine\"") || !cfg!(feature = "evm"), "{error}");
        let error = load(&[], &[kind]).unwrap_err();
        assert!(error.contains("ledger.kind is \"mine\"; it must be \"sawtooth\", "), "{error}");
    }

    #[test]
    fn ledger_whose_facts_contradict_each_other_is_refused() {
        let facts: FactsFn = |_| {
            let weakest = LedgerFacts::weakest(Default::default());
            Ok(LedgerFacts { proves_absence: true, ..weakest })
        };
        let error = load(&[mine(facts)], &[("ledger.kind", "mine")]).unwrap_err();
        assert!(error.contains("proves_absence is declared, but nodes forget"), "{error}");
    }

    settings! {
        struct OfMine in "ledger.mine." {
            /// Blocks that are left until a deadline.
            margin: u32 = number("10").between(1, 1000),
            /// Account that pays.
            account: String = text(""),
        }
    }

    #[test]
    fn settings_of_a_registered_ledger_are_like_all_others() {
        let mine = [MINE.with_settings(&[OfMine::SETTINGS])];
        let variables =
            |name: &str, text: &str| [(format!("GRID_BATCH_{name}"), text.to_owned())].into_iter();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.toml");
        std::fs::write(&file, "[ledger]\nkind = \"mine\"\n[ledger.mine]\nmargin = 11\n").unwrap();
        let load =
            |variables, flags| Config::load_with_ledgers(&mine, Some(&file), variables, flags);
        let margin = |config: Config| {
            let OfMine { margin, account } = OfMine::read(&config.settings).unwrap();
            assert_eq!(account, "");
            margin
        };
        let nothing = || variables("LEDGER_KIND", "mine");
        assert_eq!(margin(load(nothing(), Vec::new()).unwrap()), 11);
        assert_eq!(margin(load(variables("LEDGER_MINE_MARGIN", "12"), Vec::new()).unwrap()), 12);
        let flag = |text: &str| vec![(OfMine::margin.name.to_owned(), text.to_owned())];
        assert_eq!(margin(load(nothing(), flag("13")).unwrap()), 13);
        let error = load(nothing(), flag("2000")).unwrap_err().to_string();
        assert_eq!(
            error,
            "the flag --ledger-mine-margin: ledger.mine.margin is \"2000\"; it must be a number from 1 to 1000"
        );
        let error = load(variables("LEDGER_MINE_MARGN", "1"), Vec::new()).unwrap_err().to_string();
        assert!(error.ends_with("did you mean GRID_BATCH_LEDGER_MINE_MARGIN?"), "{error}");
        let printed = load(nothing(), Vec::new()).unwrap().to_string();
        assert!(
            printed.contains("\n[ledger.mine]\n") && printed.contains("\nmargin = 11\n"),
            "{printed}"
        );
        std::fs::write(&file, &printed).unwrap();
        assert_eq!(margin(load(nothing(), Vec::new()).unwrap()), 11);
    }

    #[test]
    fn errors_in_the_section_of_a_ledger_name_the_line() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.toml");
        for (content, ledgers, part) in [
            (
                "margin = \"x\"",
                &[MINE.with_settings(&[OfMine::SETTINGS])][..],
                ":2: ledger.mine.margin is \"x\"; it must be a number",
            ),
            (
                "margins = 3",
                &[MINE.with_settings(&[OfMine::SETTINGS])],
                ":2: there is no setting ledger.mine.margins; did you mean ledger.mine.margin?",
            ),
            ("margin = 3", &[MINE], ":1: there is no setting ledger.mine"),
            ("margin = 3", &[], ":1: there is no setting ledger.mine"),
        ] {
            std::fs::write(&file, format!("[ledger.mine]\n{content}\n")).unwrap();
            let error = Config::load_with_ledgers(ledgers, Some(&file), empty(), Vec::new());
            let error = error.unwrap_err().to_string();
            let line = error.replace("line ", ":").replace(&format!(" of {}", file.display()), "");
            assert!(line.starts_with(part), "{error}");
        }
    }

    #[test]
    fn names_of_ledgers_are_unique() {
        let named = |name| LedgerType { name, ..MINE };
        for name in ["sawtooth", "scabbard", "evm"] {
            let error = load(&[named(name)], &[]).unwrap_err();
            assert_eq!(
                error,
                format!(
                    "the ledger {name} cannot be registered: another ledger has this name; choose another one"
                )
            );
        }
        let error = load(&[named("a"), named("b"), named("a")], &[]).unwrap_err();
        assert!(error.starts_with("the ledger a cannot be registered: another ledger"), "{error}");
    }

    #[test]
    fn settings_of_a_ledger_are_in_its_section() {
        let error =
            load(&[LedgerType { name: "other", ..MINE }.with_settings(&[OfMine::SETTINGS])], &[]);
        let error = error.unwrap_err();
        assert!(error.contains("ledger.mine.margin, which is not in [ledger.other]"), "{error}");
        static FILE: &[&[Setting]] = &[&[Setting::text("ledger.urls.file", "", &["A file."])]];
        let error = load(&[LedgerType { name: "urls", ..MINE }.with_settings(FILE)], &[]);
        let error = error.unwrap_err();
        assert!(error.contains("its variable is that of ledger.urls"), "{error}");
    }
}
