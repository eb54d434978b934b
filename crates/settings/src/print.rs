use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{Form, GivenValue, Origin, Setting, SettingValues};

/// Settings with their help, in the syntax of the file.
struct PrintedSettings<'a> {
    values: &'a SettingValues,
    content: PrintedContent,
    secrets: Secrets,
}

/// Which settings are printed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintedContent {
    /// Every setting with its value, and where that was given.
    Effective,
    /// The settings that most servers need. A default is a comment, so that the file keeps none of them for later
    /// releases.
    Common,
    /// The same with all other settings.
    All,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Secrets {
    Replaced,
    Shown,
}

impl SettingValues {
    /// The settings as a file, with values without secrets.
    pub fn printed(&self, content: PrintedContent) -> impl fmt::Display {
        PrintedSettings { values: self, content, secrets: Secrets::Replaced }
    }

    /// The same with all secrets.
    pub fn printed_with_secrets(&self, content: PrintedContent) -> impl fmt::Display {
        PrintedSettings { values: self, content, secrets: Secrets::Shown }
    }

    /// The values of all settings that must be equal on all instances, by name and without secrets. The values for keys are
    /// one text.
    pub(crate) fn equal_on_all_instances(&self) -> BTreeMap<&'static str, String> {
        let value = |given: &&GivenValue| {
            let value = toml_value(given, Secrets::Replaced);
            given.key.as_ref().map_or_else(|| value.clone(), |key| format!("{key}={value}"))
        };
        let values = |setting: &'static Setting| {
            self.all_of(setting).iter().map(value).collect::<Vec<_>>().join(", ")
        };
        let equal = self.table().iter().filter(|setting| setting.equal);
        equal.map(|setting| (setting.name, values(setting))).collect()
    }
}

impl fmt::Display for PrintedSettings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<&'static Setting> = self.values.table().iter().collect();
        for of_section in settings.chunk_by(|a, b| section(a) == section(b)) {
            match of_section {
                [first, ..] if first.has_keys() => self.write_keys(f, of_section)?,
                _ => self.write_section(f, of_section)?,
            }
        }
        Ok(())
    }
}

impl PrintedSettings<'_> {
    fn write_section(
        &self,
        f: &mut fmt::Formatter<'_>,
        settings: &[&'static Setting],
    ) -> fmt::Result {
        let given = settings.iter().map(|setting| self.values.given(setting));
        let shown = |given: &&GivenValue| self.has(given.setting) || self.is_changed(given);
        let given: Vec<&GivenValue> = given.filter(shown).collect();
        match given.first().map(|given| section(given.setting)) {
            None | Some("") => {}
            Some(section) => writeln!(f, "\n[{section}]")?,
        }
        for given in given {
            self.write_comments(f, given.setting)?;
            if self.content == PrintedContent::Effective || self.is_changed(given) {
                self.write_value(f, given)?;
            } else {
                let (_, key) = given.setting.section_and_key();
                writeln!(f, "# {key} = {}", default(given.setting))?;
            }
        }
        Ok(())
    }

    /// Whether the setting is printed, whatever its value is.
    fn has(&self, setting: &Setting) -> bool {
        match self.content {
            PrintedContent::Common => setting.is_common,
            PrintedContent::Effective | PrintedContent::All => !setting.is_for_tests(),
        }
    }

    /// Whether the value must be in the file. A default that was given need not, if defaults are comments.
    fn is_changed(&self, given: &GivenValue) -> bool {
        let is_default = given.file.is_none() && given.text == given.setting.default;
        given.origin != Origin::Default
            && (self.content == PrintedContent::Effective || !is_default)
    }

    /// The settings of these sections as comments, then a section for each key that has values.
    fn write_keys(&self, f: &mut fmt::Formatter<'_>, settings: &[&'static Setting]) -> fmt::Result {
        let Some(name) = settings.first().and_then(|first| section(first).strip_suffix(".*"))
        else {
            return Ok(());
        };
        let mut described = settings.iter().filter(|setting| self.has(setting)).peekable();
        if described.peek().is_some() {
            writeln!(f, "\n# [{name}.\"KEY\"]")?;
        }
        for setting in described {
            self.write_comments(f, setting)?;
            writeln!(f, "# {} = {}", setting.section_and_key().1, example(setting))?;
        }
        let given = || settings.iter().flat_map(|setting| self.values.entries(setting));
        let keys: BTreeSet<&String> = given().filter_map(|given| given.key.as_ref()).collect();
        for key in keys {
            writeln!(f, "\n[{name}.{}]", quoted(key))?;
            for given in given().filter(|given| given.key.as_ref() == Some(key)) {
                self.write_value(f, given)?;
            }
        }
        Ok(())
    }

    /// What the setting does and, if not only a few are printed, when to change it.
    fn write_comments(&self, f: &mut fmt::Formatter<'_>, setting: &Setting) -> fmt::Result {
        let help = format!("{}.", setting.help());
        let text = match self.content {
            PrintedContent::Common => help,
            _ => format!("{help} {}", setting.guidance()),
        };
        wrapped(&text).iter().try_for_each(|line| writeln!(f, "# {line}"))
    }

    fn write_value(&self, f: &mut fmt::Formatter<'_>, given: &GivenValue) -> fmt::Result {
        let (_, key) = given.setting.section_and_key();
        if given.origin != Origin::Default && self.content == PrintedContent::Effective {
            writeln!(f, "# (from {})", given.origin)?;
        }
        match &given.file {
            Some(file) => writeln!(f, "{key} = {{ file = {} }}", quoted(&file.to_string_lossy())),
            // It follows from another setting.
            None if given.setting.form == Form::Number && given.text.is_empty() => Ok(()),
            None => writeln!(f, "{key} = {}", toml_value(given, self.secrets)),
        }
    }
}

/// The default in the syntax of the file, or an example if there is none.
fn default(setting: &'static Setting) -> String {
    match setting.default {
        "" => example(setting).to_owned(),
        text => toml_value(&setting.given(Origin::Default, text), Secrets::Replaced),
    }
}

fn section(setting: &Setting) -> &'static str {
    setting.section_and_key().0
}

fn example(setting: &Setting) -> &'static str {
    match setting.form {
        Form::Number => "0",
        Form::Bool => "false",
        Form::Text | Form::Secret => "\"\"",
        Form::List => "[]",
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn toml_value(given: &GivenValue, secrets: Secrets) -> String {
    let GivenValue { setting, text, .. } = given;
    let shown = |text: &str| match secrets {
        Secrets::Replaced => quoted(&setting.redact(text)),
        Secrets::Shown => quoted(text),
    };
    match setting.form {
        Form::Number | Form::Bool => text.clone(),
        Form::Text | Form::Secret => shown(text),
        Form::List => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            let items: Vec<String> = items.map(shown).collect();
            match items.as_slice() {
                [item] if setting.may_be_one_text => item.clone(),
                items => format!("[{}]", items.join(", ")),
            }
        }
    }
}

fn wrapped(text: &str) -> Vec<String> {
    const COLUMNS: usize = 98;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
