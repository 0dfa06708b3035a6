// Names as they are shown: nothing invisible in them, templates and generics shortened if wanted.

/** Control characters and those that turn the direction of text around. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Makes visible what would hide or reorder text. */
export function visible(text: string): string {
    return text.replace(HIDDEN, (letter) => {
        const code = letter.charCodeAt(0);
        if (code < 0x20) { return String.fromCharCode(0x2400 + code); }
        return code === 0x7f ? "\u2421" : `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
    });
}

/** `Foo<Bar<int>>::f` as `Foo<…>::f`; the name as it is if its brackets do not match. */
export function shortened(name: string): string {
    if (!name.includes("<")) { return name; }
    let out = "";
    let i = 0;
    while (i < name.length) {
        const letter = name[i];
        if (letter !== "<") {
            out += letter;
            i += 1;
            continue;
        }
        if (/operator<{0,2}$/.test(out)) {
            out += letter;
            i += 1;
            continue;
        }
        const end = closing(name, i);
        if (end < 0) { return name; }
        // `<T as Trait>::f` begins with what says most.
        const leading = out === "" || /[\s,&(*]$/.test(out);
        out += leading ? `<${shortened(name.slice(i + 1, end))}>` : "<\u2026>";
        i = end + 1;
    }
    return out;
}

function closing(name: string, open: number): number {
    let depth = 0;
    for (let i = open; i < name.length; i++) {
        if (name[i] === "<") { depth += 1; }
        if (name[i] === ">" && name[i - 1] !== "-") {
            depth -= 1;
            if (depth === 0) { return i; }
        }
    }
    return -1;
}

/** Namespace or class of a function: `a::b` of `a::b::f(int)`; empty if there is none. */
export function namespaceOf(name: string): string {
    let depth = 0;
    let last = -1;
    for (let i = 0; i < name.length; i++) {
        const letter = name[i];
        if (letter === "(" && depth === 0 && last >= 0 && !name.startsWith("(anonymous", i)) { break; }
        if (letter === "<" || letter === "(" || letter === "{") { depth += 1; }
        if ((letter === ">" && name[i - 1] !== "-") || letter === ")" || letter === "}") { depth = Math.max(0, depth - 1); }
        if (depth === 0 && letter === ":" && name[i + 1] === ":") {
            last = i;
            i += 1;
        }
    }
    if (last < 0) { return ""; }
    let space = name.slice(0, last);
    const trait = /^<(.*) as .*>$/.exec(space);
    if (trait) { space = trait[1]; }
    // A return type may stand in front.
    const blank = shortened(space).lastIndexOf(" ");
    return blank >= 0 && !space.includes("<") ? space.slice(space.lastIndexOf(" ") + 1) : space;
}

/** The last part of a path. */
export function baseName(path: string): string {
    return path.slice(path.lastIndexOf("/") + 1);
}

/** A number of 64 bits that stands for a function in permalinks, of what it is called and not of its place. */
export function stableId(object: string, file: string, name: string): string {
    const text = `${baseName(object)}\0${file}\0${name}`;
    let a = 0xdeadbeef;
    let b = 0x41c6ce57;
    for (let i = 0; i < text.length; i++) {
        const code = text.charCodeAt(i);
        a = Math.imul(a ^ code, 2654435761);
        b = Math.imul(b ^ code, 1597334677);
    }
    a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
    b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
    return [a, b].map((part) => (part >>> 0).toString(16).padStart(8, "0")).join("");
}
