//! The examples of `docs/http.md` about what is read below `/v1`.

use crate::test_server::{TestServer, batch, body, id};

const PAGE: &str = include_str!("../../../../../docs/http.md");
const SECTION: &str = "## Batches, services and why they wait";
const ORIGIN: &str = "http://127.0.0.1:8008";

/// The words of each command line of the section that starts with `curl`.
fn commands() -> Vec<Vec<String>> {
    let section = PAGE.split_once(SECTION).unwrap().1;
    let section = section.split("\n## ").next().unwrap().replace("\\\n", " ");
    let commands = section.lines().filter_map(|line| line.strip_prefix("curl "));
    commands.map(words).collect()
}

/// Splits at spaces outside of quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[test]
fn every_example_is_answered() {
    let server = TestServer::new();
    let known = body([batch(1)]);
    assert_eq!(server.post("/batches?service_id=circuit::service", &known).status, 202);
    let commands = commands();
    assert!(commands.len() >= 14, "{commands:?}");
    for words in commands {
        let url = words.iter().find_map(|word| word.strip_prefix(ORIGIN)).unwrap();
        let path = url.replace("BATCH", &id(&batch(1)).to_string());
        let is_post = words.iter().any(|word| word == "--data-binary");
        let headers: Vec<&str> = words
            .windows(2)
            .filter(|pair| pair[0] == "-H")
            .map(|pair| pair[1].as_str())
            .map(|header| {
                if header.starts_with("Content-Type") {
                    "content-type: application/octet-stream"
                } else {
                    header
                }
            })
            .collect();
        let response = match is_post {
            true => server.client().request("POST", &path, &headers, &body([batch(2)])),
            false => server.get(&path),
        };
        let text = String::from_utf8_lossy(&response.body);
        assert_eq!(response.status, if is_post { 202 } else { 200 }, "{path}: {text}");
    }
}
