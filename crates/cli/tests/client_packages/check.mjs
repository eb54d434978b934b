// What the package for TypeScript does, as the test of packages asks.
import { readFileSync } from "node:fs";
import { encodeBatches, GridBatch, makeBatch, makeTransaction, Signer, verifyWebhook } from "grid-batch-client";

const [batcher, alice, bob] = ["11", "22", "33"].map((byte) => new Signer(byte.repeat(32)));

function transaction(payload, fields = {}, signer = batcher) {
  const usual = { familyName: "intkey", familyVersion: "1.0", nonce: "0", batcherPublicKey: batcher.publicKey };
  return makeTransaction(signer, { ...usual, payload: new TextEncoder().encode(payload), ...fields });
}

// The lists that crates/protocol/tests/fixtures has from the published SDKs.
function fixtures() {
  const one = transaction("one");
  const many = [...Array(12).keys()].map((n) => transaction(`${n}`, { nonce: `${n}` }, [batcher, alice, bob][n % 3]));
  const binary = { payload: Uint8Array.from(Array(256).keys()), familyName: "погода", nonce: "naïve 🌦" };
  const addresses = {
    inputs: ["1cf126", "00".repeat(35)],
    outputs: ["1cf126" + "ab".repeat(32)],
    dependencies: [one.id, many[1].id],
  };
  const batch = (transactions, options) => makeBatch(batcher, transactions, options);
  return {
    one_transaction: [batch([one])],
    many_transactions: [batch(many)],
    several_batches: [batch([many[0]]), batch([many[1], many[2]]), batch([many[3]])],
    trace: [batch([one], { trace: true })],
    binary: [batch([transaction("", binary)])],
    empty_payload: [batch([transaction("")])],
    addresses: [batch([transaction("declared", addresses)])],
  };
}

function encode() {
  const lists = Object.entries(fixtures());
  console.log(JSON.stringify(Object.fromEntries(lists.map(([name, list]) => [name, hex(encodeBatches(list))]))));
}

function hex(bytes) {
  return Buffer.from(bytes).toString("hex");
}

// Follows the events of two batches, of which the second is submitted while no server listens.
async function follow(url) {
  const server = new GridBatch(url);
  const batches = ["first", "second"].map((payload) => makeBatch(batcher, [transaction(payload)]));
  const seen = [];
  const followed = (async () => {
    for await (const { event, position } of server.events({ after: "oldest" })) {
      seen.push({ id: event.id, batch: batches.findIndex((batch) => batch.id === event.batch_id), position });
      if (event.batch_id === batches[1].id && event.state === "committed") return;
    }
  })();
  await server.submit(batches.slice(0, 1));
  await server.wait(batches[0].id);
  console.log("committed first");
  for (;;) {
    const health = await fetch(`${url}/health/live`).catch(() => undefined);
    if (health === undefined) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  console.log("no server");
  const [id] = await server.submit(batches.slice(1));
  const { state } = await server.wait(id);
  await followed;
  console.log(`followed ${JSON.stringify({ state, seen })}`);
}

async function verify(file) {
  const { secret, headers, body } = JSON.parse(readFileSync(file, "utf8"));
  const { id, data } = await verifyWebhook(secret, { headers, body });
  console.log(`${id} ${data?.state}`);
}

const [task, argument] = process.argv.slice(2);
await { encode, follow, verify }[task](argument);
