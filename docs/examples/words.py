"""The longest words of a text, one by one."""


def longest(words):
    return max(words, key=length)


def length(word):
    return len(word)


text = "the quick brown fox jumps over the lazy dog"


def main():
    words = sorted(set(text.split()))
    n = 0
    while len(words) > 2:
        words.remove(longest(words))
        n += 1
    print(n, "words")


main()
