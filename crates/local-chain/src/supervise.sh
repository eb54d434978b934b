# Runs a node until standard input is closed. The system closes it when the parent process ends,
# even if it is killed, so the node and its directory never outlive a test.
#
# Each line of standard input is a port: the node restarts there with its chain. Each time the node
# listens, the script prints its directory.
#
# Arguments: the name of the node as in the functions below, its program and its options. The environment has the options
# of the chain as CHAIN_OPTIONS, for nodes that have no flags for them.
set -eu
trap '' HUP INT TERM PIPE

kind=$1
shift
directory=$(mktemp -d "${TMPDIR:-/tmp}/grid-batch-$kind-XXXXXX")
trap 'rm -rf "$directory"' EXIT

start() {
  port=$1
  shift
  # The node truncates the log itself, but perhaps only after it is read below.
  : >"$directory/log"
  "start_$kind" "$@"
  until "${kind}_listens"; do
    if ! kill -0 "$node" 2>/dev/null; then
      cat "$directory/log" >&2
      exit 1
    fi
    sleep 0.01
  done
  echo "$directory"
}

start_anvil() {
  "$@" --host 127.0.0.1 --port "$port" --state "$directory/state" --cache-path "$directory/cache" \
    --preserve-historical-states --config-out "$directory/accounts" </dev/null >"$directory/log" 2>&1 &
  node=$!
}

anvil_listens() {
  grep -q '^Listening on ' "$directory/log"
}

# Hardhat must run in the directory where it is installed. It prints colors on servers that set CI.
start_hardhat() {
  cat >"$directory/hardhat.config.js" <<'EOF'
module.exports = {
  solidity: "0.8.0",
  paths: { root: __dirname },
  networks: { hardhat: { accounts: { count: 10 } } },
};
const { hardhat } = module.exports.networks;
const { base_fee_gwei, chain_id, hardfork, mining } = JSON.parse(process.env.CHAIN_OPTIONS);
if (hardfork !== "berlin") hardhat.initialBaseFeePerGas = (base_fee_gwei ?? 1) * 1e9;
if (hardfork) hardhat.hardfork = hardfork;
hardhat.chainId = chain_id;
hardhat.mining = { auto: mining !== "manual" };
EOF
  cd "$(dirname "$1")"
  HARDHAT_DISABLE_TELEMETRY_PROMPT=true NO_COLOR=1 "$@" --config "$directory/hardhat.config.js" \
    node --hostname 127.0.0.1 --port "$port" </dev/null >"$directory/log" 2>&1 &
  node=$!
}

# It prints its accounts after its address.
hardhat_listens() {
  [ "$(grep -c '^Private Key: ' "$directory/log")" -ge 10 ]
}

# The option is the script that runs the node.
start_ganache() {
  node -e "$2" "$1" "$directory" "$port" </dev/null >"$directory/log" 2>&1 &
  node=$!
}

start_py_evm() {
  "$1" -c "$2" "$directory" "$port" </dev/null >"$directory/log" 2>&1 &
  node=$!
}

ganache_listens() { anvil_listens; }

py_evm_listens() { anvil_listens; }

start 0 "$@"
while read -r port; do
  kill -TERM "$node"
  wait "$node" || true
  start "$port" "$@"
done
kill -KILL "$node"
wait "$node" 2>/dev/null || true
