//! The reference of all settings, as Markdown.

use super::{Guidance, SETTINGS, Setting};

/// The text of `docs/settings.md`.
pub fn settings_reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut current_section = None;
    for setting in SETTINGS {
        let section = setting.name.split_once('.').map_or("", |(section, _)| section);
        if current_section != Some(section) {
            current_section = Some(section);
            let title = if section.is_empty() { "General" } else { section };
            text.push_str(&format!("\n## {title}\n"));
        }
        text.push_str(&entry(setting));
    }
    text
}

const INTRODUCTION: &str = "\
# Settings

This file is generated from the table of settings: `UPDATE_DOCS=1 cargo test -p grid-batch-service --test
settings_reference`.

The setting `poll.interval` is the key `interval` in the section `[poll]` of the file, the variable
`GRID_BATCH_POLL_INTERVAL` and the flag `--poll-interval`. Flags override variables, and variables the file.
Times are numbers with a unit, such as `500ms`, `2s` or `1h`. The server does not
compare the settings of several instances.
";

fn entry(setting: &Setting) -> String {
    let Setting { name, default, help, .. } = setting;
    let default = if default.is_empty() { "none".to_owned() } else { format!("`{default}`") };
    let guidance = Guidance::named(name).map(Guidance::text).unwrap_or_default();
    format!("\n**`{name}`** (default: {default}). {help}. {guidance}\n")
}
