use std::{collections::BTreeSet, fs, path::Path as FilePath};

use super::*;
use crate::dashboard::files::{FILES, find};

/// All texts in double quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').skip(1).step_by(2)
}

#[test]
fn every_file_of_the_folder_is_served() {
    let assets = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("src/dashboard/assets");
    let names = |folder: &str| {
        let found = fs::read_dir(assets.join(folder)).unwrap().map(Result::unwrap);
        let files = found.filter(|entry| entry.file_type().unwrap().is_file());
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        files.map(move |entry| format!("{prefix}{}", name(entry))).collect::<BTreeSet<_>>()
    };
    let found: BTreeSet<String> = names("").union(&names("views")).cloned().collect();
    assert_eq!(found, FILES.iter().map(|file| file.name.to_owned()).collect());
}

#[test]
fn files_that_others_name_are_served() {
    for file in FILES {
        for named in
            quoted(file.text).filter(|text| text.ends_with(".js") || text.ends_with(".css"))
        {
            let name = named.rsplit("../").next().unwrap().trim_start_matches("/dashboard/");
            let sibling = name.trim_start_matches("./");
            let folder = file.name.rsplit_once('/').map_or("", |(folder, _)| folder);
            let in_folder = format!("{folder}/{sibling}");
            let is_served = find(sibling).is_some() || find(&in_folder).is_some();
            assert!(is_served, "{} names {named}", file.name);
        }
    }
}

#[test]
fn policy_forbids_nothing_that_a_file_needs() {
    for file in FILES.iter().filter(|file| !file.name.ends_with(".svg")) {
        for forbidden in
            ["style=", "<style", "onclick=", "javascript:", "innerHTML", "eval(", "https://"]
        {
            assert!(!file.text.contains(forbidden), "{} has {forbidden}", file.name);
        }
        let hosts = file.text.matches("http://").count();
        let namespaces = file.text.matches("http://www.w3.org/").count();
        assert_eq!(hosts, namespaces, "{} names another host", file.name);
        let scripts = file.text.matches("<script").count();
        assert_eq!(scripts, file.text.matches("src=\"/dashboard/").count(), "{}", file.name);
    }
    for needed in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
        assert!(POLICY.contains(needed));
    }
    assert!(!POLICY.contains("unsafe"));
}
