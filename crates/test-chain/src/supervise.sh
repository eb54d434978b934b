# Runs a node until standard input is closed. The system closes it when the parent process ends,
# even if it is killed, so the node and its directory never outlive a test.
#
# Each line of standard input is a port: the node restarts there with its chain. Each time the node
# listens, the script prints its directory.
#
# Arguments: the node's program and its options.
set -eu
trap '' HUP INT TERM PIPE

directory=$(mktemp -d "${TMPDIR:-/tmp}/grid-batch-anvil-XXXXXX")
trap 'rm -rf "$directory"' EXIT

start() {
  port=$1
  shift
  # The node truncates the log itself, but perhaps only after it is read below.
  : >"$directory/log"
  "$@" --host 127.0.0.1 --port "$port" --state "$directory/state" --cache-path "$directory/cache" \
    --preserve-historical-states --config-out "$directory/accounts" </dev/null >"$directory/log" 2>&1 &
  node=$!
  until grep -q '^Listening on ' "$directory/log"; do
    if ! kill -0 "$node" 2>/dev/null; then
      cat "$directory/log" >&2
      exit 1
    fi
    sleep 0.01
  done
  echo "$directory"
}

start 0 "$@"
while read -r port; do
  kill -TERM "$node"
  wait "$node" || true
  start "$port" "$@"
done
kill -KILL "$node"
wait "$node" 2>/dev/null || true
