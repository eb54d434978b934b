# Runs one node until our standard input closes. That happens when whoever started us has ended,
# however it ended, so neither the node nor its directory outlives a test.
#
# Each line that comes in is a port: the node ends and starts again there, with the chain it had.
# Each time it listens, we say which directory it works in.
#
# Arguments: the node's program, its options.
set -eu
trap '' HUP INT TERM PIPE

directory=$(mktemp -d "${TMPDIR:-/tmp}/grid-batch-anvil-XXXXXX")
trap 'rm -rf "$directory"' EXIT

start() {
  port=$1
  shift
  # The node empties it itself, but perhaps after we have looked for what the one before wrote there.
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
