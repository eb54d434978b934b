// A node of ganache on a free port. Arguments: its program, a directory for its chain, and the port, or 0.
const { connect, createServer } = require("net");
const { dirname, join } = require("path");
const { realpathSync } = require("fs");

const [, program, directory, port] = process.argv;
const { server } = require(join(dirname(realpathSync(program)), "core.js"));
const options = JSON.parse(process.env.CHAIN_OPTIONS);
const node = server({
  chain: { chainId: options.chain_id, hardfork: options.hardfork ?? "shanghai" },
  database: { dbPath: join(directory, "state") },
  logging: { quiet: true },
  miner: { blockTime: options.interval ?? 0 },
  wallet: { totalAccounts: 10, defaultBalance: 10000, mnemonic: "test test test test test test test test test test test junk" },
});
// Ganache cannot listen again on a port that it has used a moment ago, so this program listens there.
const forward = (inner) => (client) => {
  const upstream = connect(inner, "127.0.0.1");
  const end = () => [client, upstream].forEach((socket) => socket.destroy());
  [client, upstream].forEach((socket) => socket.on("error", end).on("close", end));
  client.pipe(upstream).pipe(client);
};
node.listen(0, "127.0.0.1").then(async () => {
  if (options.interval === null) await node.provider.request({ method: "miner_stop", params: [] });
  const accounts = Object.entries(node.provider.getInitialAccounts());
  accounts.forEach(([address, { secretKey }], index) => {
    console.log(`Account #${index}: ${address}\nPrivate Key: ${secretKey}`);
  });
  const outer = createServer(forward(node.address().port));
  outer.listen(Number(port), "127.0.0.1", () => {
    console.log(`Listening on 127.0.0.1:${outer.address().port}`);
  });
});
process.on("SIGTERM", () => node.close().then(() => process.exit(0)));
