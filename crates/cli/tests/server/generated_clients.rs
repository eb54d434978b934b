//! Clients that are generated from the description of the interface submit a batch, wait for its end and list it.

use std::{fs, path::Path};

use grid_batch_test_support::{
    batches::{encode_batch_list, signed_batches},
    generated_clients::GeneratedClients,
};

use crate::harness::{BatchHarness, BatchServer};

/// A server with an empty queue, and a client of it.
struct Fixture {
    server: BatchServer,
    clients: GeneratedClients,
    _harness: BatchHarness,
}

impl Fixture {
    fn start() -> Self {
        let harness = BatchHarness::sawtooth();
        let server = harness.serve();
        let description = server.get("/openapi.json").to_string();
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generated_clients");
        let clients = GeneratedClients::new(&programs, &description);
        let batches = encode_batch_list(&signed_batches(&harness.services, 1));
        fs::write(clients.folder().join("batches"), batches).unwrap();
        Self { server, clients, _harness: harness }
    }

    /// Runs an installed program with these arguments.
    fn generate(&self, tool: &str, arguments: &str) {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        self.clients.run(self.clients.tool(tool), &arguments);
    }

    /// Compiles a program in TypeScript, which checks its types, and runs it.
    fn run_typescript(&self, name: &str) {
        self.generate("node_modules/.bin/tsc", "-p tsconfig.json");
        self.check(Path::new("node"), &format!("{name}.js"));
    }

    fn check(&self, interpreter: &Path, program: &str) {
        let url = format!("http://{}", self.server.address);
        let printed = self.clients.run(interpreter, &[program, &url, "batches"]);
        let (state, year) = printed.trim().split_once(' ').unwrap();
        assert_eq!(state, "committed", "{printed}");
        assert!(year.parse::<u32>().unwrap() > 2000, "{printed}");
    }
}

#[test]
fn client_of_openapi_typescript_submits_waits_and_lists() {
    let fixture = Fixture::start();
    fs::remove_file(fixture.clients.folder().join("hey_api.ts")).unwrap();
    let tool = "node_modules/.bin/openapi-typescript";
    fixture.generate(tool, "openapi.json -o openapi_typescript/api.d.ts");
    fixture.run_typescript("openapi_typescript");
}

#[test]
fn client_of_hey_api_submits_waits_and_lists() {
    let fixture = Fixture::start();
    fs::remove_file(fixture.clients.folder().join("openapi_typescript.ts")).unwrap();
    fixture.generate("node_modules/.bin/openapi-ts", "-i openapi.json -o hey_api_client");
    fixture.run_typescript("hey_api");
}

#[test]
fn client_of_openapi_python_client_submits_waits_and_lists() {
    let fixture = Fixture::start();
    let tool = "python/bin/openapi-python-client";
    fixture.generate(tool, "generate --path openapi.json --meta none --output-path generated");
    let python = fixture.clients.tool("python/bin/python");
    fixture.check(&python, "openapi_python_client.py");
}
