#!/usr/bin/env bash
# Checks the page: types, what is forbidden, that dist/ is what the sources make, and all tests in Chromium.
# Needs node, npm and chromium, and target/debug/{cg_report,callgrind_annotate}.
set -euo pipefail
cd "$(dirname "$0")"
cargo build -q -p cg-report -p callgrind-annotate
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm run -s check
npm run -s build
git diff --exit-code -- ../dist || { echo "dist/ is not what web/src makes: npm run build, and commit it" >&2; exit 1; }
npm test --silent
