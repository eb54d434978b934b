//! The examples of `docs/http.md`.

use crate::{
    client::{Client, Response},
    test_server::{TestServer, batch, body, id},
};

const PAGE: &str = include_str!("../../../../docs/http.md");
const ORIGIN: &str = "http://127.0.0.1:8080";

/// A command line of the page that starts with `curl`.
#[derive(Debug)]
struct Example {
    path: String,
    headers: Vec<String>,
    body: Option<Vec<u8>>,
}

/// All of them but those about other addresses.
fn examples() -> Vec<Example> {
    let blocks = PAGE.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let lines = blocks.flat_map(|block| block.split("curl ").skip(1));
    let examples = lines.map(|line| words(&line.replace("\\\n", " ")));
    examples.filter_map(|words| Example::new(&words)).collect()
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

impl Example {
    fn new(words: &[String]) -> Option<Self> {
        let path = words.iter().find_map(|word| word.strip_prefix(ORIGIN))?;
        let values = |option: &str| -> Vec<String> {
            let pairs = words.windows(2).filter(|pair| pair[0] == option);
            pairs.map(|pair| pair[1].clone()).collect()
        };
        let body = match (values("--data").pop(), values("--data-binary").pop().as_deref()) {
            (Some(json), _) => Some(json.into_bytes()),
            (None, Some("@batches")) => Some(body([batch(2)])),
            (None, Some(other)) => panic!("unknown file {other}"),
            (None, None) => None,
        };
        let path = path.replace("BATCH", &id(&batch(1)).to_string());
        // The test's client has a type of its own, unless it finds one in lower-case letters.
        let lower = |header: String| header.replace("Content-Type", "content-type");
        Some(Self { path, headers: values("-H").into_iter().map(lower).collect(), body })
    }

    fn run(&self, mut client: Client) -> Response {
        let headers: Vec<&str> = self.headers.iter().map(String::as_str).collect();
        match &self.body {
            Some(body) => client.request("POST", &self.path, &headers, body),
            None => client.request("GET", &self.path, &headers, b""),
        }
    }
}

#[test]
fn every_example_is_answered() {
    let server = TestServer::with(|builder, store| {
        builder.with_events(store.clone()).with_operators(store.clone(), || None)
    });
    let known = body([batch(1)]);
    assert_eq!(server.post("/batches?service_id=circuit::service", &known).status, 202);
    let examples = examples();
    assert!(examples.len() >= 20, "{examples:#?}");
    for example in examples.iter().filter(|example| !example.path.contains("/stream")) {
        let response = example.run(server.client());
        let text = String::from_utf8_lossy(&response.body);
        let path = &example.path;
        assert!((200..300).contains(&response.status), "{path}: {} {text}", response.status);
    }
}
