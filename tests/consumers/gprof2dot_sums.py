"""Prints what gprof2dot reads from a callgrind profile: the total, and each function's and call's share, sorted.

Names of modules are left out: gprof2dot knows functions by their name alone and gives them the module that comes first.
"""

import sys

import gprof2dot

with open(sys.argv[1], encoding="utf-8", errors="surrogateescape") as file:
    parser = gprof2dot.CallgrindParser(file)
    profile = parser.parse()

total = sum(function[gprof2dot.SAMPLES] for function in profile.functions.values())
print(f"{len(profile.functions)} functions, total {total:.0f}")
lines = []
for function in profile.functions.values():
    lines.append(f"{function.name} self {function[gprof2dot.SAMPLES]:.0f} called {function.called}")
    for call in function.calls.values():
        callee = profile.functions[call.callee_id].name
        if call[gprof2dot.CALLS] > 0:
            lines.append(f"{function.name} -> {callee}: {call[gprof2dot.CALLS]:.0f} calls, {call[gprof2dot.SAMPLES2]:.0f}")
print("\n".join(sorted(lines)))
