# Objects, attributes, methods, dictionaries and lists.
class Node:
    __slots__ = ("key", "left", "right")

    def __init__(self, key):
        self.key, self.left, self.right = key, None, None

    def insert(self, key):
        node = self
        while True:
            side = "left" if key < node.key else "right"
            child = getattr(node, side)
            if child is None:
                setattr(node, side, Node(key))
                return
            node = child


def depth(node):
    return 0 if node is None else 1 + max(depth(node.left), depth(node.right))


state, root, counts = 1, Node(1 << 30), {}
for i in range(160000):
    state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    root.insert(state)
    counts[state % 997] = counts.get(state % 997, 0) + 1
print(depth(root), sorted(counts.values())[:5])
