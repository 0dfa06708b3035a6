// What is chosen within something else: a node of a tree, a box of a picture.

import { useState } from "preact/hooks";

/**
 * A choice that means something only within `whole`, and is forgotten with it. At once: an effect would forget it after the
 * next paint only, and a key that comes before would find a number of the tree that was there.
 */
export function useWithin<T>(whole: unknown, first: T): [T, (value: T) => void] {
    const [held, hold] = useState({ whole, value: first });
    return [held.whole === whole ? held.value : first, (value) => hold({ whole, value })];
}
