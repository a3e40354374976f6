# Sourced by `proxied` and `replayed`: servers that say where they listen, and what the official suite finds of them.
# `here` is this folder.
say() { printf 'conformance: %s\n' "$*" >&2; }

suite=$("$here/install")
PATH=$("$here/../install")/node/node_modules/.bin:$PATH
work=$(mktemp -d)
running=()
finish() {
    [ ${#running[@]} = 0 ] || kill "${running[@]}" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap finish EXIT

# listening NAME COMMAND...: starts a server, waits until it says where it listens; `url` and `pid` say where and who.
listening() {
    local name=$1 line
    shift
    url=
    mkfifo "$work/$name.said"
    "$@" 2>"$work/$name.said" >/dev/null &
    pid=$!
    running+=($pid)
    exec 8<"$work/$name.said"
    while read -r line <&8; do
        case $line in *"listening on "*) url=${line##*listening on } && break ;; esac
    done
    [ -n "$url" ] || { say "$name did not start"; exit 1; }
    cat <&8 >/dev/null &
    exec 8<&-
}

# verdicts URL PACKAGE ARGUMENT...: each scenario and check with its verdict, one a line.
verdicts() {
    local at=$1 package=$2 out
    shift 2
    out=$(mktemp -d "$work/out.XXXXXX")
    (cd "$work" && timeout 300 node "$suite/$package/dist/index.js" server --url "$at" "$@" -o "$out") >"$out.log" 2>&1 || true
    node -e '
        const fs = require("fs"), path = require("path");
        for (const entry of fs.readdirSync(process.argv[1], { recursive: true }).sort()) {
            if (path.basename(entry) !== "checks.json") continue;
            // The folder of a scenario ends with when it ran.
            const scenario = path.dirname(entry).replace(/-\d{4}-\d\d-\d\dT.*$/, "");
            const checks = JSON.parse(fs.readFileSync(path.join(process.argv[1], entry)));
            const verdicts = checks.filter(check => check.status !== "INFO").map(check => `${check.id} ${check.status}`);
            verdicts.sort().forEach(verdict => console.log(scenario, verdict));
        }' "$out"
}
