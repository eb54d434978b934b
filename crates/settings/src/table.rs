use std::sync::Arc;

use crate::{
    OldSetting, Setting,
    setting::{flag_of, variable_of},
};

/// Ends the name under which a file with the value of a setting is named.
const FILE_SUFFIX: &str = "_file";

/// The settings that can be given, in the order in which they are printed.
#[derive(Debug, Clone)]
pub struct SettingTable {
    settings: Arc<[&'static Setting]>,
    old: &'static [OldSetting],
    missing_ledgers: Vec<&'static str>,
}

/// A name under which a value can be given.
#[derive(Debug, Clone)]
pub struct SettingName {
    /// The name.
    pub name: String,
    /// The setting that has the value; `None` if it has no effect any more.
    pub setting: Option<&'static Setting>,
    /// The setting of an earlier release, if the name is that of one.
    pub old: Option<&'static OldSetting>,
    /// Whether a file with the value is named.
    pub is_file: bool,
}

impl SettingName {
    /// The name of the environment variable.
    pub fn variable(&self) -> String {
        variable_of(&self.name)
    }

    /// The flag, without its dashes.
    pub fn flag(&self) -> String {
        flag_of(&self.name)
    }

    /// Whether the help of commands shows it: it is the name of a setting that most servers need.
    pub fn is_shown(&self) -> bool {
        self.old.is_none() && !self.is_file && self.setting.is_some_and(|it| it.is_common)
    }
}

impl SettingTable {
    /// A table of these settings.
    pub fn new(settings: impl IntoIterator<Item = &'static Setting>) -> Self {
        Self { settings: settings.into_iter().collect(), old: &[], missing_ledgers: Vec::new() }
    }

    /// The same, where the names of these settings of earlier releases are accepted too.
    #[must_use]
    pub fn with_old(self, old: &'static [OldSetting]) -> Self {
        Self { old, ..self }
    }

    /// The same, where the adapters of these ledgers are not compiled in. Their settings are in sections of their names.
    #[must_use]
    pub fn with_missing_ledgers(self, names: Vec<&'static str>) -> Self {
        Self { missing_ledgers: names, ..self }
    }

    /// The ledger whose settings are in this section, if its adapter is not compiled in.
    pub(crate) fn without_adapter(&self, section: &str) -> Option<&'static str> {
        self.missing_ledgers.iter().copied().find(|name| name.eq_ignore_ascii_case(section))
    }

    /// All settings.
    pub fn iter(&self) -> impl Iterator<Item = &'static Setting> {
        self.settings.iter().copied()
    }

    /// The setting with this name.
    pub fn named(&self, name: &str) -> Option<&'static Setting> {
        self.iter().find(|setting| setting.name == name)
    }

    /// All names under which values can be given. Those of old settings come last.
    pub fn names(&self) -> impl Iterator<Item = SettingName> {
        let current = self.iter().flat_map(|setting| names(setting.name, Some(setting), None));
        let old = self.old.iter().flat_map(|old| match old.new_name() {
            None => names(old.name, None, Some(old)),
            Some(new) => match self.named(new) {
                Some(setting) => names(old.name, Some(setting), Some(old)),
                // Its adapter is not compiled in.
                None => Vec::new(),
            },
        });
        current.chain(old)
    }

    /// Whether the file has a section of this name.
    pub fn has_section(&self, section: &str) -> bool {
        let begins =
            |name: &str| name.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
        self.names().any(|it| begins(&it.name))
    }

    /// The setting with the most similar name, if one is similar.
    pub fn nearest(&self, name: &str) -> Option<&'static Setting> {
        let distance = |setting: &&Setting| edit_distance(name, setting.name);
        let shown = self.iter().filter(|setting| !setting.is_for_tests());
        let nearest = shown.min_by_key(|setting| distance(setting))?;
        (distance(&nearest) <= nearest.name.len() / 3).then_some(nearest)
    }
}

fn names(
    name: &str,
    setting: Option<&'static Setting>,
    old: Option<&'static OldSetting>,
) -> Vec<SettingName> {
    let name_of = |is_file: bool, suffix| SettingName {
        name: format!("{name}{suffix}"),
        setting,
        old,
        is_file,
    };
    let mut names = vec![name_of(false, "")];
    if setting.is_some_and(Setting::may_be_in_file) {
        names.push(name_of(true, FILE_SUFFIX));
    }
    names
}

/// The Levenshtein distance.
pub fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}
