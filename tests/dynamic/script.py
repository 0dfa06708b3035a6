import json, re, collections
class Item:
    def __init__(self, n):
        self.n, self.name = n, 'item %d' % n
items = [Item(i * 37 % 500) for i in range(1500)]
by = collections.defaultdict(list)
for item in sorted(items, key=lambda i: (i.n, i.name)):
    by[item.n % 17].append(item.name)
text = json.dumps(by, sort_keys=True)
print(len(text), sum(map(len, json.loads(text).values())), len(re.findall(r'm (\d)\d*5', text)))
