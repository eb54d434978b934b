//! The manual, `docs/`: every page is in its contents, links lead somewhere, and what it names exists.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use grid_batch_tests::sources::source_files;

/// Pages with blocks of commands, each with the test that runs them: its file and its name.
const RUN_BY: &[(&str, &str, &str)] = &[
    (
        "docs/backup-and-upgrade.md",
        "crates/cli/tests/server/backups.rs",
        "commands_of_the_page_restore_a_backup",
    ),
    ("README.md", "crates/cli/tests/server/readme.rs", "commands_of_the_readme_run"),
    (
        "docs/command-line.md",
        "crates/cli/tests/server/client_commands.rs",
        "commands_of_the_page_run",
    ),
    ("docs/http.md", "crates/api/tests/api/examples.rs", "every_example_is_answered"),
    (
        "docs/tutorial.md",
        "crates/cli/tests/server/tutorial.rs",
        "tutorial_shows_what_commands_print",
    ),
    (
        "docs/withdrawals-guide.md",
        "crates/cli/tests/withdrawals/guide.rs",
        "commands_of_the_guide_pay_withdrawals",
    ),
    (
        "docs/guides/openzeppelin-relayer.md",
        "crates/cli/tests/withdrawals/guide.rs",
        "relayer_guide_makes_every_request_of_its_table",
    ),
];

#[test]
fn every_page_is_in_the_contents_of_the_manual() {
    let summary = read("docs/SUMMARY.md");
    let in_contents: BTreeSet<String> =
        links(&summary).into_iter().map(|link| format!("docs/{link}")).collect();
    let pages: BTreeSet<String> =
        pages().into_iter().filter(|page| page != "docs/SUMMARY.md").collect();
    let missing: Vec<_> = pages.symmetric_difference(&in_contents).collect();
    assert!(missing.is_empty(), "in docs or in docs/SUMMARY.md, not in both: {missing:?}");
}

#[test]
fn every_anchor_of_a_link_is_a_heading() {
    let mut broken = Vec::new();
    for page in pages().iter().chain(&["README.md".to_owned(), "CONTRIBUTING.md".to_owned()]) {
        for link in links(&read(page)) {
            let Some((file, anchor)) = link.split_once('#') else { continue };
            if file.contains("://") || !(file.is_empty() || file.ends_with(".md")) {
                continue;
            }
            let folder = Path::new(page).parent().unwrap();
            let target = match file {
                "" => read(page),
                file => read(folder.join(file).to_str().unwrap()),
            };
            if !anchors(&target).contains(anchor) {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "no such heading:\n{}", broken.join("\n"));
}

/// A registry shows the README of a crate without rustdoc, which alone resolves links to items.
#[test]
fn readmes_of_crates_have_no_links_to_items() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let readme = entry.unwrap().path().join("README.md");
        let text = fs::read_to_string(&readme).unwrap();
        for line in outside_of_blocks(&text) {
            let mut targets = line.split("](").skip(1);
            let is_shown = targets.all(|target| target.starts_with("http"));
            assert!(
                is_shown && !line.replace("](", "").contains("`]"),
                "{}: {line}",
                readme.display()
            );
        }
    }
}

#[test]
fn every_code_of_an_error_is_in_the_table_of_the_manual() {
    let page = read("docs/http.md");
    let (_, table) = page.split_once("| status | codes |").unwrap();
    let mut listed = BTreeSet::new();
    for row in table.lines().filter(|row| row.starts_with("| ") && !row.contains("---")) {
        let (status, codes) = row[2..].split_once(" | ").unwrap();
        for item in codes.split("; ") {
            let numbers = item.split([' ', ',']).filter(|word| !word.is_empty());
            let numbers = numbers.map_while(|word| word.parse::<u16>().ok());
            listed.extend(numbers.map(|code| (code, status.parse::<u16>().unwrap())));
        }
    }
    let mut declared = BTreeSet::new();
    let is_of_api = |file: &PathBuf| file.components().any(|part| part.as_os_str() == "api");
    for file in source_files().into_iter().filter(is_of_api) {
        let text = fs::read_to_string(file).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in text.split(['[', '(']) {
            let mut words = part.trim_start().trim_start_matches("StatusCode::").split(", ");
            let status = words.next().and_then(status_of);
            let code = words.next().and_then(|code| code.trim().parse::<u16>().ok());
            declared.extend(code.zip(status));
        }
    }
    assert!(declared.len() > 70, "{declared:?}");
    let different: Vec<_> = declared.symmetric_difference(&listed).collect();
    assert!(different.is_empty(), "declared or listed, not both (code, status): {different:?}");
}

fn status_of(name: &str) -> Option<u16> {
    let statuses = [
        ("BAD_REQUEST", 400),
        ("UNAUTHORIZED", 401),
        ("FORBIDDEN", 403),
        ("NOT_FOUND", 404),
        ("METHOD_NOT_ALLOWED", 405),
        ("REQUEST_TIMEOUT", 408),
        ("CONFLICT", 409),
        ("GONE", 410),
        ("PAYLOAD_TOO_LARGE", 413),
        ("UNSUPPORTED_MEDIA_TYPE", 415),
        ("MISDIRECTED_REQUEST", 421),
        ("TOO_MANY_REQUESTS", 429),
        ("INTERNAL_SERVER_ERROR", 500),
        ("SERVICE_UNAVAILABLE", 503),
    ];
    statuses.iter().find(|(known, _)| *known == name).map(|(_, status)| *status)
}

#[test]
fn every_block_of_code_has_a_language() {
    for page in pages() {
        for (language, block) in blocks(&read(&page)) {
            assert!(!language.is_empty(), "{page}: a block has no language:\n{block}");
        }
    }
}

#[test]
fn a_test_runs_every_block_of_commands() {
    let has_commands = |page: &String| {
        let shells = ["sh", "bash", "shell", "console"];
        blocks(&read(page)).iter().any(|(language, _)| shells.contains(&language.as_str()))
    };
    let mut pages = pages();
    pages.push("README.md".to_owned());
    let with_commands: BTreeSet<String> = pages.into_iter().filter(has_commands).collect();
    let run: BTreeSet<String> = RUN_BY.iter().map(|(page, ..)| (*page).to_owned()).collect();
    assert_eq!(
        with_commands, run,
        "RUN_BY names the test that runs the commands of a page; commands that no test runs are a block `text`"
    );
    for (page, file, test) in RUN_BY {
        assert!(read(file).contains(&format!("fn {test}(")), "{page}: {file} has no test {test}");
        let name = page.strip_prefix("docs/").unwrap_or(page);
        assert!(read(file).contains(name), "{test} does not name {page}");
    }
}

#[test]
fn every_alert_has_a_section_and_the_reverse() {
    let alerts = read("deploy/prometheus/alerts.yml");
    let alerts: BTreeSet<&str> =
        alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let guide = read("docs/guides/alerts.md");
    let sections: BTreeSet<&str> =
        guide.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(sections, alerts);
}

/// The page names a test as `` `name` in `file` ``.
#[test]
fn tests_that_the_manual_names_exist() {
    let page = read("docs/explanation/accuracy.md");
    let named: Vec<(&str, &str)> = page
        .lines()
        .flat_map(|line| {
            let parts: Vec<&str> = line.split("` in `").collect();
            parts
                .windows(2)
                .map(|pair| {
                    let name = pair[0].rsplit('`').next().unwrap();
                    (name, pair[1].split('`').next().unwrap())
                })
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(named.len() >= 15, "the page names only {named:?}");
    for (name, file) in named {
        assert!(root().join(file).is_file(), "docs/explanation/accuracy.md names {file}");
        let source = read(file);
        let (before, _) = source
            .split_once(&format!("fn {name}("))
            .unwrap_or_else(|| panic!("{file} has no test {name}"));
        // The attribute stands before the function, or the function is in the macro proptest!.
        let attributes = &before[before.rfind("}\n").unwrap_or(0)..];
        assert!(attributes.contains("test"), "{name} in {file} is not a test");
    }
}

#[test]
fn code_of_the_guide_is_that_of_the_example() {
    let read = |file: &str| read(Path::new("examples/ledger").join(file).to_str().unwrap());
    let files = ["src/lib.rs", "src/main.rs", "tests/suite.rs", "Cargo.toml", "grid-batch.toml"];
    let texts = files.map(|file| without_indentation(&read(file)));
    let page = self::read("docs/guides/new-ledger.md");
    let code = blocks(&page).into_iter().filter(|(language, _)| language != "text");
    for (language, block) in code {
        let block = without_indentation(&block);
        assert!(texts.iter().any(|text| text.contains(&block)), "no such {language}:\n{block}");
    }
    assert!(
        read("src/lib.rs").lines().count() < 300,
        "the guide says that it has less than 300 lines"
    );
}

/// An importer reads a whole program, and finds it from the crate.
#[test]
fn programs_of_importers_are_short_and_named() {
    let page = read("examples/importers/README.md");
    let readmes: String =
        names_in("crates").iter().map(|name| read(&format!("crates/{name}/README.md"))).collect();
    let mut programs = names_in("examples/importers");
    programs.retain(|name| root().join("examples/importers").join(name).join("src").is_dir());
    assert!(programs.len() >= 8, "{programs:?}");
    for program in programs {
        let lines = read(&format!("examples/importers/{program}/src/main.rs")).lines().count();
        assert!(lines <= 150, "{program} has {lines} lines");
        assert!(page.contains(&format!("]({program})")), "the page does not list {program}");
        let path = format!("`examples/importers/{program}`");
        assert!(readmes.contains(&path), "no README of a crate names {program}");
    }
}

/// The names of the files and folders in a folder.
fn names_in(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn without_indentation(text: &str) -> String {
    text.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn anchors_are_those_of_headings() {
    let page = "# A `b`, and C\n```sh\n# no heading\n```\n## A b and C\n## A b and C\n";
    let found = anchors(page);
    assert_eq!(found, ["a-b-and-c", "a-b-and-c-1", "a-b-and-c-2"].map(str::to_owned).into());
}

/// Headings as links name them: lower case, without punctuation, numbered where they repeat.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut repeated: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for heading in outside_of_blocks(page).filter(|line| line.starts_with('#')) {
        let anchor: String = heading
            .trim_start_matches('#')
            .trim()
            .to_lowercase()
            .chars()
            .filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'))
            .map(|it| if it == ' ' { '-' } else { it })
            .collect();
        let earlier = repeated.entry(anchor.clone()).or_default();
        anchors.insert(if *earlier == 0 { anchor } else { format!("{anchor}-{earlier}") });
        *earlier += 1;
    }
    anchors
}

/// The targets of the links of a page, but for those to other sites and empty ones.
fn links(page: &str) -> Vec<String> {
    let text: Vec<&str> = outside_of_blocks(page).collect();
    let text = text.join("\n");
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .map(str::to_owned)
        .collect()
}

fn outside_of_blocks(page: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        inside ^= is_fence;
        !inside && !is_fence
    })
}

/// The language and the text of each block of code.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), open.as_mut()) {
            (Some(language), None) => open = Some((language.trim().to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block does not end: {open:?}");
    blocks
}

/// The pages of the manual, as paths from the root of the repository.
fn pages() -> Vec<String> {
    let mut folders = vec![root().join("docs")];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    pages.sort();
    pages
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
