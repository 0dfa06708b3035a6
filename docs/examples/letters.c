/* Counts how often each word of its input occurs, with a list for each first letter. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static char words[10000][32];
static int next[10000];
static int first[26];
static int times[10000];
static int known;

int find(const char *word)
{
    int *list = &first[word[0] - 'a'];
    for (int i = *list; i; i = next[i])
        if (strcmp(words[i], word) == 0)
            return i;
    known++;
    strcpy(words[known], word);
    next[known] = *list;
    return *list = known;
}

int read_word(char *word)
{
    int c, n = 0;
    while ((c = getchar()) != EOF && !isalpha(c))
        ;
    for (; c != EOF && isalpha(c); c = getchar())
        if (n < 31)
            word[n++] = tolower(c);
    word[n] = 0;
    return n;
}

int main(void)
{
    char word[32];
    while (read_word(word))
        times[find(word)]++;
    int most = 0;
    for (int i = 0; i <= known; i++)
        if (times[i] > times[most])
            most = i;
    printf("%d words, \"%s\" %d times\n", known, words[most], times[most]);
    return 0;
}
