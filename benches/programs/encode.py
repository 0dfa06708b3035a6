# Encoding and decoding JSON, with strings, numbers and nesting.
import json

data = [{"id": i, "name": "item %d" % i, "tags": ["a", "b", str(i % 13)], "value": i / 7, "more": {"ok": i % 2 == 0}} for i in range(3000)]
total = 0
for _ in range(24):
    total += len(json.loads(json.dumps(data, indent=1)))
print(total)
