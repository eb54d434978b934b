//! `POST /v1/batches`, and labels.

use serde_json::json;

use crate::test_server::{TestServer, batch, body, id};

const OCTETS: &str = "content-type: application/octet-stream";

fn label_of(server: &TestServer, number: u64) -> serde_json::Value {
    server.get(&format!("/v1/batches/{}", id(&batch(number)))).json()["label"].clone()
}

#[test]
fn answer_has_a_link_to_each_batch() {
    let server = TestServer::new();
    let path = "/v1/batches?service_id=a::b&label=mine";
    let response = server.post(path, &body([batch(1)]));
    let link = format!("http://grid.test/v1/batches/{}?service_id=a::b", id(&batch(1)));
    let expected = json!({ "data": [
        { "id": id(&batch(1)).to_string(), "service_id": "a::b", "label": "mine", "link": link },
    ] });
    assert_eq!((response.status, response.json()), (202, expected));
    assert_eq!(response.header("location"), Some(link.as_str()));
    let of_link = server.get(link.strip_prefix("http://grid.test").unwrap());
    assert_eq!(of_link.json()["state"], "new");

    let several = server.post("/v1/batches", &body([batch(2), batch(3)]));
    assert_eq!((several.status, several.header("location")), (202, None));
    assert_eq!(several.json()["data"].as_array().unwrap().len(), 2);
}

#[test]
fn refused_list_is_told_as_problem_details() {
    let server = TestServer::new();
    let response = server.post("/v1/batches", b"");
    assert_eq!(response.error(), (400, 34));
    assert_eq!(response.header("content-type"), Some("application/problem+json"));
}

#[test]
fn label_is_given_in_a_header_or_in_the_query() {
    let server = TestServer::new();
    let post = |path: &str, header: &str, number: u64| {
        let headers = [OCTETS, header];
        server.client().request("POST", path, &headers, &body([batch(number)])).status
    };
    assert_eq!(post("/batches", "Grid-Batch-Label: order é", 1), 202);
    assert_eq!(post("/batches?label=order%20%C3%A9", "x: y", 2), 202);
    assert_eq!(post("/v1/batches", "grid-batch-label: other", 3), 202);
    assert_eq!([1, 2, 3].map(|number| label_of(&server, number)), ["order é", "order é", "other"]);
    let found = server.get("/v1/batches?label=order+%C3%A9&order=oldest").json();
    let ids: Vec<_> = found["data"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
    assert_eq!(ids, [1, 2].map(|number| id(&batch(number)).to_string()));
}

#[test]
fn repeated_batch_keeps_its_first_label() {
    let server = TestServer::new();
    for label in ["first", "second"] {
        let path = format!("/v1/batches?label={label}");
        assert_eq!(server.post(&path, &body([batch(1)])).status, 202);
    }
    assert_eq!(label_of(&server, 1), "first");
}

#[test]
fn unknown_parameters_are_refused_and_nothing_is_stored() {
    let server = TestServer::new();
    let response = server.post("/v1/batches?servce_id=a::b", &body([batch(1)]));
    assert_eq!(response.error(), (400, 1007));
    assert!(!server.is_stored(&id(&batch(1))));
}

#[test]
fn invalid_labels_are_refused_and_nothing_is_stored() {
    let server = TestServer::new();
    let long = format!("/v1/batches?label={}", "x".repeat(256));
    for path in ["/v1/batches?label=", "/v1/batches?label=a%0Ab", &long] {
        assert_eq!(server.post(path, &body([batch(1)])).error(), (400, 1061), "{path}");
    }
    let headers = [OCTETS, "grid-batch-label: a"];
    let different =
        server.client().request("POST", "/batches?label=b", &headers, &body([batch(1)]));
    assert_eq!(different.error(), (400, 1061));
    assert!(!server.is_stored(&id(&batch(1))));
}
