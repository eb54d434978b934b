use std::sync::Arc;

use crate::Setting;

/// Ends the name of a setting that names a file with the value of another one.
const FILE_SUFFIX: &str = "_file";

/// The settings that can be given, in the order in which they are printed.
#[derive(Debug, Clone)]
pub struct SettingTable(Arc<[&'static Setting]>);

impl SettingTable {
    /// A table of these settings.
    pub fn new(settings: impl IntoIterator<Item = &'static Setting>) -> Self {
        Self(settings.into_iter().collect())
    }

    /// All settings.
    pub fn iter(&self) -> impl Iterator<Item = &'static Setting> {
        self.0.iter().copied()
    }

    /// The setting with this name.
    pub fn named(&self, name: &str) -> Option<&'static Setting> {
        self.iter().find(|setting| setting.name == name)
    }

    /// The setting that names a file with the value of this one, if it has such a setting.
    pub fn file_of(&self, setting: &Setting) -> Option<&'static Setting> {
        self.named(&format!("{}{FILE_SUFFIX}", setting.name))
    }

    /// The setting whose value is in the file that this one names.
    pub fn value_of(&self, file: &Setting) -> Option<&'static Setting> {
        self.named(file.name.strip_suffix(FILE_SUFFIX)?)
    }

    /// Whether the file has a section of this name.
    pub fn has_section(&self, section: &str) -> bool {
        let begins =
            |name: &str| name.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
        self.iter().any(|setting| begins(setting.name))
    }

    /// The setting with the most similar name, if one is similar.
    pub fn nearest(&self, name: &str) -> Option<&'static Setting> {
        let distance = |setting: &&Setting| edit_distance(name, setting.name);
        let nearest = self.iter().min_by_key(|setting| distance(setting))?;
        (distance(&nearest) <= nearest.name.len() / 3).then_some(nearest)
    }
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
