/* Puts numbers into a tree and looks for others. The tree calls itself, and malloc. */
#include <stdio.h>
#include <stdlib.h>

struct node {
    int key;
    struct node *left, *right;
};

struct node *insert(struct node *at, int key)
{
    if (!at) {
        at = calloc(1, sizeof *at);
        at->key = key;
    } else if (key < at->key) {
        at->left = insert(at->left, key);
    } else if (key > at->key) {
        at->right = insert(at->right, key);
    }
    return at;
}

int contains(const struct node *at, int key)
{
    if (!at)
        return 0;
    if (at->key == key)
        return 1;
    return contains(key < at->key ? at->left : at->right, key);
}

struct node *build(int n)
{
    struct node *root = NULL;
    unsigned key = 1;
    for (int i = 0; i < n; i++) {
        key = key * 1103515245 + 12345;
        root = insert(root, key >> 16 & 0x7fff);
    }
    return root;
}

int search(const struct node *root, int n)
{
    int found = 0;
    for (int key = 0; key < n; key++)
        found += contains(root, key);
    return found;
}

int main(void)
{
    struct node *root = build(2000);
    printf("%d found\n", search(root, 10000));
    return 0;
}
