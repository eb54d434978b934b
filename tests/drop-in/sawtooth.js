// Submits a batch that npm's sawtooth-sdk has built, and waits for its commit.
//
// usage: NODE_PATH=.../node_modules node sawtooth.js URL

const { createHash, randomBytes } = require("node:crypto");
const { createContext, CryptoFactory } = require("sawtooth-sdk/signing");
const protobuf = require("sawtooth-sdk/protobuf");

function build() {
  const context = createContext("secp256k1");
  const signer = new CryptoFactory(context).newSigner(context.newRandomPrivateKey());
  const key = signer.getPublicKey().asHex();
  const payload = Buffer.from("drop-in");
  const transactionHeader = protobuf.TransactionHeader.encode({
    familyName: "intkey",
    familyVersion: "1.0",
    inputs: ["1cf126"],
    outputs: ["1cf126"],
    signerPublicKey: key,
    batcherPublicKey: key,
    dependencies: [],
    nonce: randomBytes(16).toString("hex"),
    payloadSha512: createHash("sha512").update(payload).digest("hex"),
  }).finish();
  const transaction = protobuf.Transaction.create({
    header: transactionHeader,
    headerSignature: signer.sign(transactionHeader),
    payload,
  });
  const header = protobuf.BatchHeader.encode({
    signerPublicKey: key,
    transactionIds: [transaction.headerSignature],
  }).finish();
  const batch = protobuf.Batch.create({
    header,
    headerSignature: signer.sign(header),
    transactions: [transaction],
  });
  return protobuf.BatchList.encode({ batches: [batch] }).finish();
}

async function json(response) {
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response.json();
}

async function main(url) {
  const headers = { "Content-Type": "application/octet-stream" };
  const { link } = await json(await fetch(`${url}/batches`, { method: "POST", headers, body: build() }));
  const { data } = await json(await fetch(`${link}&wait=20`));
  if (data.length !== 1 || data[0].status !== "COMMITTED") throw new Error(JSON.stringify(data));
}

main(process.argv[2]).catch((error) => {
  console.error(error);
  process.exit(1);
});
