# Runs one server until our standard input closes. That happens when whoever started us has ended,
# however it ended, so neither the server nor its directory outlives a test.
#
# Arguments: the directory to work in, the template, the server's program, its options.
set -eu
trap '' HUP INT TERM PIPE

directory=$(mktemp -d "$1/XXXXXX")
trap 'rm -rf "$directory"' EXIT
cp -R "$2" "$directory/data"
postgres=$3
shift 3

echo "$directory"
"$postgres" -D "$directory/data" -k "$directory" "$@" </dev/null >"$directory/log" 2>&1 &
server=$!

read -r _ || true
kill -QUIT "$server"
wait "$server" || true
