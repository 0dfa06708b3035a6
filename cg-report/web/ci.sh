#!/usr/bin/env bash
# Checks the page: types, what is forbidden, that dist/ is what the sources make, and all tests in Chromium.
# Needs node, npm and chromium, and target/debug/{cg_report,callgrind_annotate,cg_export,mem_annotate,grind}. `ci.sh install` only installs what it needs of
# the network.
set -euo pipefail
cd "$(dirname "$0")"
# What is there already is what the lock file says, or is not used.
if ! cmp -s package-lock.json node_modules/installed; then
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/installed
fi
[[ ${1-} == install ]] && exit
# Who has built everything does not want it replaced.
[[ -n ${GRIND_BUILT-} ]] || cargo build -q -p cg-report -p callgrind-annotate -p cg-export -p mem-annotate -p grind
npm run -s check
npm run -s build
git diff --exit-code -- ../dist || { echo "dist/ is not what web/src makes: npm run build, and commit it" >&2; exit 1; }
# Data comes late, so that what does not wait for it fails always, not only on a busy machine.
SLOW=${SLOW-60} npm test --silent
