//! `/openapi.json` and `/docs`: every operation that is described is served.

use std::sync::Arc;

use grid_batch_api::{ApiBuilder, openapi_json};
use grid_batch_core::webhooks::AllowedNetworks;
use grid_batch_withdrawals::mocks::MockCallRules;
use serde_json::{Value, json};

use crate::{
    client::Response, test_server::TestServer, withdrawals::test_pools::server_with_pools_and,
};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

fn operations(document: &Value) -> Vec<(String, String)> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, operations): (&String, &Value)| {
        let methods = METHODS.iter().filter(|method| operations.get(method).is_some());
        methods.map(|method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

/// Whether a server has no such operation. One that refuses the request for another reason has it.
fn is_missing(response: &Response) -> bool {
    let code = response.body.starts_with(b"{").then(|| response.json());
    let code = code.and_then(|json| json.pointer("/error/code").or(json.get("code"))?.as_u64());
    matches!(code, Some(1001 | 1002 | 1020))
}

fn everything() -> TestServer {
    TestServer::with(|builder, store| {
        let builder = builder
            .with_events(store.clone())
            .with_webhooks(store.clone(), AllowedNetworks::default());
        let builder = builder.with_tokens(store.clone());
        builder.with_operators(store.clone(), || None)
    })
}

#[test]
fn every_described_operation_is_served() {
    let with_calls = |builder: ApiBuilder| builder.with_calls(Arc::new(MockCallRules::new()));
    let servers = [everything(), server_with_pools_and(with_calls)];
    let document: Value = serde_json::from_str(&openapi_json()).unwrap();
    let operations = operations(&document);
    assert!(operations.len() >= 15, "{operations:?}");
    for (method, path) in operations {
        // They need a source of reports, and the settings of a server.
        if path == "/v1/gas-admins" || path.starts_with("/v1/database/") {
            continue;
        }
        let url = path.replace("{id}", "00");
        // A stream begins with an error, so that it ends.
        let url = if path.ends_with("/stream") { format!("{url}?after=x") } else { url };
        let answer = |server: &TestServer| server.client().request(&method, &url, &[], b"");
        assert!(servers.iter().any(|server| !is_missing(&answer(server))), "{method} {path}");
    }
}

/// A value that no parameter with a type or a list of values accepts.
const NONE: &str = "abc";

#[test]
fn every_parameter_of_our_own_interface_is_checked() {
    let server = everything();
    let document: Value = serde_json::from_str(&openapi_json()).unwrap();
    let mut checked = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let served = path.starts_with("/v1/") && !path.contains("transactions");
        let parameters = operations["get"]["parameters"].as_array().into_iter().flatten();
        let typed = parameters.filter(|it| it["in"] == "query").filter(|parameter| {
            let schema = &parameter["schema"];
            schema["type"] != "string" || schema.get("enum").is_some()
        });
        for name in typed.filter(|_| served).map(|it| it["name"].as_str().unwrap()) {
            let url = format!("{}?{name}={NONE}", path.replace("{id}", "00"));
            let response = server.get(&url);
            assert_eq!(response.error(), (400, 1023), "{url}");
            let unknown = server.get(&format!("{}?{NONE}=1", path.replace("{id}", "00")));
            assert_eq!(unknown.error(), (400, 1007), "{path}");
            checked += 1;
        }
    }
    assert!(checked >= 15, "only {checked}");
}

#[test]
fn every_operation_and_parameter_has_a_description() {
    let document: Value = serde_json::from_str(&openapi_json()).unwrap();
    let has_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let mut ids = Vec::new();
    for (method, path) in operations(&document) {
        let operation = &document["paths"][&path][method.to_lowercase()];
        assert!(has_text(&operation["summary"]), "{method} {path}");
        ids.push(operation["operationId"].as_str().unwrap().to_owned());
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(has_text(&parameter["description"]), "{method} {path}: {parameter}");
        }
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "the ids of operations differ");
}

#[test]
fn description_is_served_as_json_and_as_a_page() {
    let server = TestServer::new();
    let response = server.get("/openapi.json");
    assert_eq!((response.status, response.header("content-type")), (200, Some("application/json")));
    assert_eq!(String::from_utf8(response.body).unwrap(), openapi_json());
    let page = server.get("/docs");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let page = String::from_utf8(page.body).unwrap();
    for expected in
        ["<h3>POST /batches</h3>", "<h3>GET /batch_statuses</h3>", "id=\"BatchStatusJson\""]
    {
        assert!(page.contains(expected), "{expected}");
    }
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
}

#[test]
fn every_reference_leads_to_a_schema() {
    let document: Value = serde_json::from_str(&openapi_json()).unwrap();
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    assert!(references.len() > 100, "{references:?}");
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect_references<'a>(value: &'a Value, references: &mut Vec<&'a str>) {
    references.extend(value["$ref"].as_str());
    let nested: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Object(fields) => Box::new(fields.values()),
        Value::Array(items) => Box::new(items.iter()),
        _ => return,
    };
    nested.for_each(|value| collect_references(value, references));
}

#[test]
fn tokens_are_optional_and_bodies_are_binary() {
    let document: Value = serde_json::from_str(&openapi_json()).unwrap();
    assert_eq!(document["security"], json!([{}, { "token": [] }]));
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    for path in ["/batches", "/v1/batches", "/scabbard/{circuit}/{service}/batches"] {
        let content = &document["paths"][path]["post"]["requestBody"]["content"];
        let schema = &content["application/octet-stream"]["schema"];
        assert_eq!(*schema, json!({ "type": "string", "format": "binary" }), "{path}");
    }
}
