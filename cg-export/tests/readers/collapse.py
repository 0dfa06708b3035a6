"""Prints what gprof2dot makes of files, as JSON: the self cost of each function. The first argument is its name of the
format: collapse or callgrind."""

import json
import sys

import gprof2dot

kind = {"collapse": gprof2dot.CollapseParser, "callgrind": gprof2dot.CallgrindParser}[sys.argv[1]]
output = []
for path in sys.argv[2:]:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        profile = kind(file).parse()
    own = {}
    for function in profile.functions.values():
        own[function.name] = own.get(function.name, 0) + function[gprof2dot.SAMPLES]
    output.append([{"name": "", "total": sum(own.values()), "self": own}])
print(json.dumps(output))
