//! What the compiler and the linter do not check: words, names of tests, and documents that name
//! code.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

#[test]
fn words_that_were_given_up_do_not_come_back() {
    let given_up = given_up_words();
    let mut found = Vec::new();
    for file in files(&["rs", "md", "sql", "toml", "sh", "yml", ""]) {
        // The first two name the words; the third names the Unix user.
        let exempt =
            ["docs/glossary.md", "tests/tests/tidy.rs", "crates/test-postgres/src/account.rs"];
        if exempt.iter().any(|name| file.ends_with(name)) {
            continue;
        }
        for (number, line) in (1..).zip(read(&file).lines()) {
            for word in words(line).into_iter().filter(|word| given_up.contains(word)) {
                found.push(format!("{}:{number}: {word}", file.display()));
            }
        }
    }
    assert!(found.is_empty(), "see docs/glossary.md for other words:\n{}", found.join("\n"));
}

#[test]
fn test_names_are_short() {
    const LONGEST: usize = 59;
    let mut found = Vec::new();
    for file in files(&["rs"]) {
        for name in test_names(&read(&file)).iter().filter(|name| name.len() > LONGEST) {
            found.push(format!("{}: {name} has {} characters", file.display(), name.len()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A client tells problems apart by the code.
#[test]
fn each_error_code_has_one_title() {
    let mut titles = BTreeMap::new();
    let is_of_api = |file: &PathBuf| file.display().to_string().contains("crates/api/src/");
    for file in files(&["rs"]).into_iter().filter(is_of_api) {
        let source = read(&file);
        // As `[STATUS, CODE, "Title"]` at a variant, or as the arguments of `Refusal::new`.
        for kind in source.split(['[', '(']) {
            let parts: Vec<&str> = kind.splitn(4, [',', ']', ')']).map(str::trim).collect();
            let [_, code, title, _] = parts[..] else { continue };
            let is_code = code.parse::<u16>().is_ok_and(|code| code > 0);
            if is_code && title.starts_with('"') && title.ends_with('"') {
                let first = titles.entry(code.to_owned()).or_insert_with(|| title.to_owned());
                assert_eq!(first, title, "code {code} has two titles");
            }
        }
    }
    assert!(titles.len() > 40, "{titles:?}");
}

/// The rule is in CONTRIBUTING.md.
#[test]
fn error_enums_and_nothing_else_are_non_exhaustive() {
    let mut found = Vec::new();
    for file in files(&["rs"]).into_iter().filter(|file| is_source(file)) {
        let source = read(&file);
        let mut attributes = String::new();
        for line in source.lines() {
            if let Some(item) = line.strip_prefix("pub enum ").or(line.strip_prefix("pub struct "))
            {
                let name = item.split([' ', '<', '(', ';']).next().unwrap();
                let is_error = line.starts_with("pub enum ") && name.ends_with("Error");
                if is_error != attributes.contains("#[non_exhaustive]") {
                    found.push(format!("{}: {name}", file.display()));
                }
            }
            if line.is_empty() {
                attributes.clear();
            }
            attributes.push_str(line);
        }
    }
    assert!(found.is_empty(), "see CONTRIBUTING.md:\n{}", found.join("\n"));
}

#[test]
fn test_helpers_are_not_included_by_path() {
    let included: Vec<PathBuf> = files(&["rs"])
        .into_iter()
        .filter(|file| !file.ends_with("tests/tests/tidy.rs"))
        // A fuzz target is outside of the workspace and shares its checks with the tests.
        .filter(|file| !file.components().any(|part| part.as_os_str() == "fuzz"))
        .filter(|file| read(file).contains("#[path"))
        .collect();
    assert!(included.is_empty(), "use grid-batch-test-support: {included:?}");
}

/// An `if` says what the condition is for.
#[test]
fn no_match_has_true_or_false_as_an_arm() {
    assert_no_line_is("an `if` is read more easily", is_bool_arm);
}

/// A caller sees what each of two parameters is.
#[test]
fn no_parameter_is_a_tuple() {
    assert_no_line_is("give each part a parameter, or the pair a struct", has_tuple_parameter);
}

fn assert_no_line_is(rule: &str, is_found: fn(&str) -> bool) {
    let mut found = Vec::new();
    // This file has examples.
    for file in files(&["rs"]).iter().filter(|file| !file.ends_with("tests/tests/tidy.rs")) {
        let source = read(file);
        let lines = (1..).zip(source.lines()).filter(|(_, line)| is_found(line));
        found.extend(lines.map(|(number, _)| format!("{}:{number}", file.display())));
    }
    assert!(found.is_empty(), "{rule}:\n{}", found.join("\n"));
}

/// Whether an arm of a `match` begins with `true` or `false`. The formatter begins a line with each arm.
fn is_bool_arm(line: &str) -> bool {
    let line = line.trim_start();
    line.strip_prefix("true ")
        .or_else(|| line.strip_prefix("false "))
        .is_some_and(|rest| rest.starts_with("=>") || rest.starts_with("if "))
}

/// Whether a parameter of a function is written as `(a, b): (A, B)`. The formatter begins a line with `fn` or, if there is
/// one line for each parameter, with the parameter.
fn has_tuple_parameter(line: &str) -> bool {
    let line = line.trim_start();
    let is_of_function = line.starts_with('(') || line.contains("fn ");
    let is_name = |c: char| c.is_alphanumeric() || "_,&. ".contains(c);
    let is_tuple = |rest: &str| {
        rest.split_once(')').is_some_and(|(names, rest)| {
            names.contains(',') && names.chars().all(is_name) && rest.starts_with(':')
        })
    };
    is_of_function && !line.starts_with("//") && line.split('(').skip(1).any(is_tuple)
}

#[test]
fn every_decision_is_in_the_index() {
    let directory = root().join("docs/decisions");
    let index = read(&directory.join("README.md"));
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name == "README.md" {
            continue;
        }
        let title = read(&path).lines().next().unwrap().trim_start_matches("# ").to_owned();
        let (number, title) = title.split_once(". ").unwrap();
        let line = format!("{number}. [{title}]({name})");
        assert!(index.contains(&line), "docs/decisions/README.md has no line {line:?}");
    }
}

#[test]
fn every_crate_is_in_the_page_about_crates() {
    let page = read(&root().join("docs/crates.md"));
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let directory = entry.unwrap().file_name();
        let link = format!("](../crates/{})", directory.to_str().unwrap());
        assert!(page.contains(&link), "docs/crates.md has no link to crates/{directory:?}");
    }
}

/// Pages that name functions and types with their files, `` `function` in `file` ``, and how many at least.
const PAGES_WITH_NAMES: &[(&str, usize)] =
    &[("docs/architecture.md", 20), ("docs/source-documents.md", 70)];

#[test]
fn functions_and_types_that_pages_name_exist() {
    for (page, least) in PAGES_WITH_NAMES {
        let named = functions_of(&read(&root().join(page)));
        assert!(named.len() >= *least, "{page} names only {}", named.len());
        for (name, file) in &named {
            let path = root().join(file);
            assert!(path.is_file(), "{page} names {file}, which does not exist");
            assert!(defines(&read(&path), name), "{page} names {name}, which is not in {file}");
        }
    }
}

/// Whether a file defines this function or type, or has a statement of this name.
fn defines(source: &str, name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap();
    ["fn ", "struct ", "enum ", "trait "]
        .iter()
        .flat_map(|kind| ["(", "<", " ", ";", ":"].map(|end| format!("{kind}{name}{end}")))
        .any(|definition| source.contains(&definition))
        || source.contains(&format!("-- {name}"))
}

/// A reader follows the walkthrough in an editor: the first function of each step is called in a file that an earlier
/// step names, or a job of this name begins with it.
#[test]
fn walkthrough_can_be_followed() {
    let document = read(&root().join("docs/architecture.md"));
    let steps = steps_of_the_walkthrough(&document);
    assert!(steps.len() <= 20, "the walkthrough has {} steps", steps.len());
    let sources: String = files(&["rs"]).iter().map(|path| read(path)).collect();
    let mut earlier = String::new();
    for step in steps {
        let named = functions_of(&step);
        let (function, _) = named.first().expect("a step names a function");
        let is_called = match step.split_once("Job `").and_then(|(_, rest)| rest.split_once('`')) {
            Some((job, _)) => sources.contains(&format!("\"{job}\"")),
            None => earlier.contains(&format!("{function}(")),
        };
        assert!(is_called, "no file of an earlier step calls {function}: {step}");
        for (_, file) in named {
            earlier.push_str(&read(&root().join(file)));
        }
    }
}

#[test]
fn relative_links_resolve() {
    let mut broken = Vec::new();
    for file in files(&["md"]) {
        let text = read(&file);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") || path.starts_with("crate::") {
                continue;
            }
            if path.contains("::") || !file.parent().unwrap().join(path).exists() {
                let is_rustdoc = path.contains("::") || !path.contains(['/', '.']);
                if !is_rustdoc {
                    broken.push(format!("{}: {target}", file.display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The first column of the table "Words that were given up" in the glossary.
fn given_up_words() -> BTreeSet<String> {
    let glossary = read(&root().join("docs/glossary.md"));
    let (_, table) = glossary.split_once("## Words that were given up").unwrap();
    let words: BTreeSet<String> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .flat_map(|cell| cell.split(", "))
        .map(|word| word.trim_matches('`').to_owned())
        .filter(|word| word != "word" && !word.starts_with('-'))
        .collect();
    assert!(words.len() >= 20, "the glossary has only {words:?}");
    words
}

/// The words of a line in lower case; identifiers are split where their words meet.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_lower = false;
    for character in line.chars() {
        if !character.is_ascii_alphabetic() || (character.is_ascii_uppercase() && after_lower) {
            words.push(std::mem::take(&mut word));
        }
        if character.is_ascii_alphabetic() {
            word.push(character.to_ascii_lowercase());
        }
        after_lower = character.is_ascii_lowercase();
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// The names of the functions that follow a test attribute.
fn test_names(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim_start) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if is_test && let Some((_, rest)) = line.split_once("fn ") {
            let name = rest.split(['(', '<']).next().unwrap();
            names.push(name.to_owned());
            is_test = false;
        }
    }
    names
}

/// The functions and files that a text names: `` `function` in `file` ``, wherever it stands in a line.
fn functions_of(text: &str) -> Vec<(String, String)> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let names = text.match_indices("` in `crates/").filter_map(|(index, between)| {
        let file = &text[index + between.len() - "crates/".len()..];
        Some((text[..index].rsplit('`').next()?.to_owned(), file.split('`').next()?.to_owned()))
    });
    names.collect()
}

/// The numbered steps of the walkthrough.
fn steps_of_the_walkthrough(document: &str) -> Vec<String> {
    let (_, walk) = document.split_once("\n## Walkthrough").expect("a section");
    let walk = walk.split("\n## ").next().unwrap_or_default();
    let mut steps = Vec::new();
    for paragraph in walk.split("\n\n") {
        let mut lines = paragraph.lines().peekable();
        while let Some(line) = lines.next() {
            if line.split_once(". ").is_none_or(|(number, _)| number.parse::<u8>().is_err()) {
                continue;
            }
            let mut step = line.to_owned();
            while let Some(more) = lines.next_if(|line| line.starts_with(' ')) {
                step = format!("{step}\n{more}");
            }
            steps.push(step);
        }
    }
    steps
}

/// Every file of the repository with one of these endings. Scripts have none.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root(), endings, &mut found);
    found
}

fn collect(directory: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_symlink() || matches!(name, "target" | ".git" | "node_modules") {
            continue;
        }
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_dir() {
            collect(&path, endings, found);
        } else if endings.contains(&ending) {
            found.push(path);
        }
    }
}

/// Whether the file belongs to the library of a crate.
fn is_source(file: &Path) -> bool {
    let mut parts = file.components().map(|part| part.as_os_str());
    parts.any(|part| part == "crates") && parts.nth(1).is_some_and(|part| part == "src")
}

fn read(file: &Path) -> String {
    String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn arms_and_tuple_parameters_are_found() {
    assert!(["    true => a,", "false if b => c,"].iter().all(|line| is_bool_arm(line)));
    assert!(!["(true, _) => a,", "Some(true) => b,", "true"].iter().any(|line| is_bool_arm(line)));
    let with = ["fn f((a, b): (A, B)) {", "    (_, b): &C,", "fn g(a: A, (b, mut c): (B, C)) {"];
    assert!(with.iter().all(|line| has_tuple_parameter(line)));
    let without = ["let c = |(a, b): (A, B)| a;", "fn f(a: (A, B)) {", "let (a, b): (A, B) = c;"];
    assert!(!without.iter().any(|line| has_tuple_parameter(line)));
}

#[test]
fn identifiers_are_split_into_words() {
    assert_eq!(words("let EvidenceSearch = a_b1;"), ["let", "evidence", "search", "a", "b"]);
    assert_eq!(words("HTTPError"), ["httperror"]);
}
