// cc: -O1 -gdwarf-4 -fno-optimize-sibling-calls
// differs: Bc Bcm (the reference has a conditional branch for each iteration of a repeated instruction)
// The same calls, and some that repeat string instructions.
#define STRINGS
#include "tree.c"
