"""Calls of every kind that Python has. With an argument, what the interpreter itself says of them goes to that file: caller, callee and
how often; and after a star how many generators were made of which function, where making one runs the function."""

import sys
import threading


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def key(x):
    return -x


def count(n):
    for i in range(n):
        yield i


def chain(n):
    yield from count(n)


def fails(n):
    if n == 0:
        raise ValueError(n)
    fails(n - 1)


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def echo():
    got = None
    while True:
        try:
            got = yield got
        except KeyError:
            got = "thrown"


def decorated(f):
    def inner(*args, **named):
        return f(*args, **named)

    return inner


def classes():
    class Base:
        def __init__(self, x):
            self.x = x

        @property
        def y(self):
            return self.x + fib(1)

        def __getitem__(self, k):
            return (lambda z: z * 2)(k)

        def __add__(self, other):
            return Base(self.x + other.x)

        def __iter__(self):
            return count(self.x)

        def __enter__(self):
            return self

        def __exit__(self, *what):
            return True

    class Derived(Base):
        def __init__(self, x):
            super().__init__(x)

    return Derived


def work(n):
    for i in range(n):
        fib(i)


def main(threads):
    fib(9)
    sorted(range(6), key=key)
    for i in count(5):
        fib(2)
    list(chain(4))
    for _ in range(3):
        try:
            fails(4)
        except ValueError:
            pass
    made = classes()
    for i in range(20):
        c = made(i)
        c.y
        c[4]
        c + c
    for v in made(3):
        key(v)
    with made(1):
        fails(1)
    [fib(1) for i in range(3)]
    {i: key(i) for i in range(3)}
    list(map(lambda q: fib(q), range(3)))
    sum(v for v in count(3))
    wrapped = decorated(lambda a, b: a + b)
    for i in range(30):
        wrapped(i, b=3)
    even(10)
    e = echo()
    next(e)
    e.send(1)
    e.throw(KeyError())
    e.close()
    for i in range(5):
        # Its code is freed, and other code may come to lie there.
        exec("def made%d(x):\n    return key(x)\nmade%d(3)\n" % (i, i), {"key": key})
    threads = [threading.Thread(target=work, args=(6,)) for _ in range(threads)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]


def told(out):
    calls, made, seen = {}, {}, {}
    qualified = sys.version_info >= (3, 11)

    def name(code):
        return "%s:%d" % (code.co_qualname if qualified else code.co_name, code.co_firstlineno)

    def profile(frame, event, arg):
        if event != "call":
            return
        code, back = frame.f_code, frame.f_back
        edge = name(back.f_code) if back else "-", name(code), code.co_filename
        calls[edge] = calls.get(edge, 0) + 1
        if qualified and code.co_flags & 0x20 and frame not in seen:
            seen[frame] = frame
            edge = "*", name(code), code.co_filename
            made[edge] = made.get(edge, 0) + 1

    threading.setprofile(profile)
    sys.setprofile(profile)
    main(3)
    sys.setprofile(None)
    with open(out, "w") as file:
        for edge, n in sorted({**calls, **made}.items()):
            file.write("\t".join(edge) + "\t%d\n" % n)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] != "alone":
        told(sys.argv[1])
    else:
        main(3 if len(sys.argv) == 1 else 0)
