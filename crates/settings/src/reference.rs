use crate::{Setting, SettingTable};

/// The reference of all settings, as Markdown.
pub fn settings_reference(table: &SettingTable) -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut current_section = None;
    for setting in table.iter().filter(|setting| !setting.is_for_tests()) {
        let (section, _) = setting.section_and_key();
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

This file is generated from the tables of settings: `UPDATE_DOCS=1 cargo test -p grid-batch-service --features evm
--test settings_reference`.

The setting `poll.interval` is the key `interval` in the section `[poll]` of the file, the variable
`GRID_BATCH_POLL_INTERVAL` and the flag `--poll-interval`. Flags override variables, and variables the file.
Times are numbers with a unit, such as `500ms`, `2s` or `1h`. A setting that is *equal* must have the same value on all
instances; the part `settings` of `/health` has differences.

A setting with `*` in its name has a value for each key: `services.*.strategy` is the key `strategy` in the section
`[services.\"KEY\"]` of the file. The variable `GRID_BATCH_SERVICES_STRATEGY` and the flag `--services-strategy` are
lists of `KEY=VALUE` with commas between them. The key `*` is for all others, where a setting says nothing else about it,
and `VALUE` alone is for this key.

A setting that may hold a secret, and a list, can be in a file of its own: `database = { file = \"/run/secrets/url\" }`,
`GRID_BATCH_DATABASE_FILE` or `--database-file`. A list has an item in each line there. Use it where secrets are mounted as
files, and instead of a flag, which every user of the machine can read in the list of processes.

A program that registers a ledger of its own adds the settings of this ledger, as the section `[ledger.NAME]` with the name
of the ledger. The setting `ledger.mine.account` has the variable `GRID_BATCH_LEDGER_MINE_ACCOUNT` and the flag
`--ledger-mine-account`. Settings of a ledger that is not compiled in do not exist.
";

fn entry(setting: &Setting) -> String {
    let Setting { name, default, .. } = setting;
    let default = if default.is_empty() { "none".to_owned() } else { format!("`{default}`") };
    let equal = if setting.equal { "equal; " } else { "" };
    let (help, when) = (setting.help(), setting.when());
    format!("\n**`{name}`** ({equal}default: {default}). {help}. {when}\n")
}
