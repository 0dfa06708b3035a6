"""Prints what DuckDB and pyarrow read from a data set, as JSON: the self cost of each function, by process and event."""

import json
import sys

import duckdb
import pyarrow.compute
import pyarrow.dataset

folder = sys.argv[1]
if sys.argv[2] == "duckdb":
    rows = duckdb.execute(
        """select process || ' ' || event, function, sum(count)::bigint
           from read_parquet(? || '/**/*.parquet', hive_partitioning = true) group by all""",
        [folder],
    ).fetchall()
else:
    table = pyarrow.dataset.dataset(folder, partitioning="hive").to_table()
    table = table.group_by(["process", "event", "function"]).aggregate([("count", "sum")])
    rows = [
        (f"{row['process']} {row['event']}", row["function"], row["count_sum"]) for row in table.to_pylist()
    ]
profiles = {}
for name, function, count in rows:
    profiles.setdefault(name, {})[function] = count
print(json.dumps([[{"name": name, "total": sum(own.values()), "self": own} for name, own in sorted(profiles.items())]]))
