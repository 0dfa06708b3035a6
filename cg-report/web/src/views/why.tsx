// V9: what the change from the base to the new profile consists of.

export function Causes(_: { most: number }) {
    return null;
}
