"""Runs each documented query on a data set with DuckDB, and prints what it answers, as JSON: rows by name of the query.
Times go to standard error."""

import json
import pathlib
import sys
import time

import duckdb

store, folder = sys.argv[1:]
answers = {}
for path in sorted(pathlib.Path(folder).glob("*.sql")):
    connection = duckdb.connect()
    connection.execute("SET VARIABLE store = ?", [store])
    start = time.perf_counter()
    answer = connection.execute(path.read_text(encoding="utf-8"))
    names = [column[0] for column in answer.description]
    answers[path.stem] = [dict(zip(names, row)) for row in answer.fetchall()]
    print(f"{path.stem}: {time.perf_counter() - start:.2f} s", file=sys.stderr)
print(json.dumps(answers, default=str))
