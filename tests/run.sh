#!/usr/bin/env bash
# All tests of the workspace, documentation examples included; ends with one line that counts them.
# Arguments go to the test runner, for example a filter.
set -euo pipefail
cd "$(dirname "$0")/.."

locked=()
[ -n "${CI:-}" ] && locked=(--locked)
mkdir -p target
report=$(mktemp -d)
trap 'rm -rf "$report"' EXIT
status=0

if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run "${locked[@]}" --workspace --no-fail-fast "$@" 2>&1 | tee "$report/tests" || status=1
else
    echo "cargo-nextest is not installed; using cargo test (make tools installs it)"
    cargo test "${locked[@]}" --workspace --lib --bins --tests --examples --no-fail-fast "$@" 2>&1 | tee "$report/tests" || status=1
fi
if [ $# -eq 0 ]; then
    cargo test "${locked[@]}" --workspace --doc 2>&1 | tee "$report/doc" || status=1
fi

cat "$report"/* | awk '
    # nextest: "Summary [ 1.2s] 10 tests run: 9 passed (1 slow), 1 failed, 2 skipped"; cargo: "test result: ok. 9 passed; 1 failed; 2 ignored; ..."
    /^ *Summary \[/ || /^test result: / {
        for (i = 2; i <= NF; i++) {
            word = $i; gsub(/[^a-z]/, "", word)
            if (word == "passed") passed += $(i - 1)
            if (word == "failed" || (word == "timed" && $(i + 1) ~ /^out/) || word == "exec") failed += $(i - 1)
            if (word == "skipped" || word == "ignored") skipped += $(i - 1)
        }
    }
    END { printf "tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped; exit passed == 0 }
' | tee target/test-summary || status=1
[ $status -eq 0 ] || echo "tests failed: see above" >&2
exit $status
