"""Runs each documented query on a data set with DuckDB or Spark, and prints what it answers, as JSON: rows by name of the
query. Times go to standard error."""

import decimal
import json
import pathlib
import sys
import tempfile
import time
import zipfile


class DuckDb:
    def __init__(self, store, opening):
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute("SET VARIABLE store = ?", [store])
        self.connection.execute(opening)

    def ask(self, query):
        answer = self.connection.execute(query)
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row)) for row in answer.fetchall()]


class Spark:
    def __init__(self, store, opening):
        import pyspark
        from pyspark.sql import SparkSession

        # Where musl is installed beside glibc, snappy-java takes the library for the wrong one.
        jar = next((pathlib.Path(pyspark.__file__).parent / "jars").glob("snappy-java-*.jar"))
        library = "org/xerial/snappy/native/Linux/x86_64/libsnappyjava.so"
        self.folder = tempfile.TemporaryDirectory()
        with zipfile.ZipFile(jar) as opened:
            path = pathlib.Path(opened.extract(library, self.folder.name))
        snappy = f"-Dorg.xerial.snappy.lib.path={path.parent} -Dorg.xerial.snappy.lib.name={path.name}"
        wanted = {
            "spark.driver.extraJavaOptions": snappy,
            "spark.driver.host": "localhost",
            # As much as there is work for here.
            "spark.sql.shuffle.partitions": 4,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder.master("local[*]")
        for name, value in wanted.items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        self.session.conf.set("store", store)
        for statement in opening.split(";\n"):
            self.session.sql(statement)

    def ask(self, query):
        return [row.asDict() for row in self.session.sql(query.strip().removesuffix(";")).collect()]


def number(value):
    """Decimals are numbers; whatever else JSON does not know is text."""
    return float(value) if isinstance(value, decimal.Decimal) else str(value)


engine, store, folder = sys.argv[1:]
folder = pathlib.Path(folder)
opening = (folder / "open" / f"{engine}.sql").read_text(encoding="utf-8").strip().removesuffix(";")
database = {"duckdb": DuckDb, "spark": Spark}[engine](store, opening)
answers = {}
for path in sorted(folder.glob("*.sql")):
    start = time.perf_counter()
    answers[path.stem] = database.ask(path.read_text(encoding="utf-8"))
    print(f"{engine}: {path.stem}: {time.perf_counter() - start:.2f} s", file=sys.stderr)
print(json.dumps(answers, default=number))
