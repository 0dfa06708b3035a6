"""Checks processed profiles of the Firefox Profiler, and prints what they hold, as JSON: for each thread its name, its
total and the self weight of each function.

The Profiler's own code is in no package registry. So this is a checker of its own, after the Profiler's published
description of its types, and strict: every key of the tables it knows must be there, every table must be as long as it says, every
index must point into its table, and a stack's prefix must come before it.
"""

import json
import sys

VERSION = 55
META = {
    "interval", "startTime", "processType", "product", "version", "preprocessedProfileVersion", "categories",
    "markerSchema", "symbolicated", "sampleUnits",
}
THREAD = {
    "processType", "processStartupTime", "processShutdownTime", "registerTime", "unregisterTime", "pausedRanges", "name",
    "isMainThread", "pid", "tid", "samples", "markers", "stackTable", "frameTable", "stringArray", "funcTable",
    "resourceTable", "nativeSymbols",
}
# Column: the table it points into, and whether it may be null or -1.
TABLES = {
    "stackTable": {"frame": ("frameTable", False), "prefix": ("stackTable", True)},
    "frameTable": {
        "address": None, "inlineDepth": None, "category": ("categories", True), "subcategory": None,
        "func": ("funcTable", False), "nativeSymbol": ("nativeSymbols", True), "innerWindowID": None, "line": None,
        "column": None,
    },
    "funcTable": {
        "isJS": None, "relevantForJS": None, "name": ("stringArray", False), "resource": ("resourceTable", True),
        "fileName": ("stringArray", True), "lineNumber": None, "columnNumber": None,
    },
    "resourceTable": {"lib": None, "name": ("stringArray", False), "host": None, "type": None},
    "nativeSymbols": {"libIndex": None, "address": None, "name": ("stringArray", False), "functionSize": None},
    "samples": {"stack": ("stackTable", True), "weight": None, "timeDeltas": None, "threadCPUDelta": None},
}


def need(condition, message):
    if not condition:
        sys.exit(f"{path}: {message}")


def check(profile):
    meta = profile["meta"]
    need(META <= meta.keys(), f"meta lacks {META - meta.keys()}")
    need(meta["preprocessedProfileVersion"] == VERSION, "another version than the one that is documented")
    need(isinstance(profile["libs"], list), "no libs")
    for category in meta["categories"]:
        need({"name", "color", "subcategories"} <= category.keys(), "a category is incomplete")
        need(category["subcategories"][:1] == ["Other"], "the first subcategory must be `Other`")
    need(profile["threads"], "no threads")
    for thread in profile["threads"]:
        need(THREAD <= thread.keys(), f"a thread lacks {THREAD - thread.keys()}")
        size = {"stringArray": len(thread["stringArray"]), "categories": len(meta["categories"])}
        size |= {name: thread[name]["length"] for name in TABLES}
        need(all(isinstance(text, str) for text in thread["stringArray"]), "a string is none")
        for name, columns in TABLES.items():
            for column, target in columns.items():
                values = thread[name].get(column)
                need(isinstance(values, list), f"{name}.{column} is missing")
                need(len(values) == size[name], f"{name}.{column} has {len(values)} values, not {size[name]}")
                if target is None:
                    continue
                table, optional = target
                for value in values:
                    if optional and value in (None, -1):
                        continue
                    good = isinstance(value, int) and 0 <= value < size[table]
                    need(good, f"{name}.{column}: {value} is outside of {table}")
        for stack, prefix in enumerate(thread["stackTable"]["prefix"]):
            need(prefix is None or prefix < stack, "a prefix comes after its stack")
        samples = thread["samples"]
        need(samples["weightType"] == "samples", "another type of weight")
        need(all(isinstance(weight, int) for weight in samples["weight"]), "a weight is no integer")
        need(all(delta >= 0 for delta in samples["timeDeltas"]), "time goes back")


def sums(thread):
    own = {}
    stacks, frames, functions = thread["stackTable"], thread["frameTable"], thread["funcTable"]
    for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
        name = thread["stringArray"][functions["name"][frames["func"][stacks["frame"][stack]]]]
        own[name] = own.get(name, 0) + weight
    return {"name": thread["name"], "total": sum(thread["samples"]["weight"]), "self": own}


output = []
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    check(profile)
    output.append([sums(thread) for thread in profile["threads"]])
print(json.dumps(output))
