# Runs one server until standard input is closed. The system closes it when the process that started
# this script has ended for any reason, so neither the server nor its directory outlives a test.
#
# Arguments: the work directory, the template, the path of `postgres`, and its options.
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
