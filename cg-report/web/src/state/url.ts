// The hash of the URL is the whole state, so that a link says what is seen.

export interface Shown {
    /** Stable id of the active function; empty for the whole program. */
    f: string;
    /** Stable id of the selected function, if it is another one. */
    s: string;
    /** A name to look for if the id is not known here. */
    n: string;
    /** Name of the event, and of the second one. */
    e: string;
    e2: string;
    /** Views of the upper and the lower pane. */
    p: [string, string];
    q: string;
    cmp: string;
    /** Stable ids from the root of the flame graph to where it is zoomed. */
    path: string[];
    /** Formulas: `name=formula`. */
    x: string[];
    /** Function, file or what else the code view shows. */
    file: string;
    why: string;
    /** Numbers of parts, from 1: `2-5,7`. */
    part: string;
    /** How numbers are shown. */
    num: string;
    /** What are functions of their own: those of each of their `contexts`, `inlined` ones, both, or nothing. */
    own: string;
    /** What of the data objects is shown. */
    mem: string;
}

export const NOTHING: Shown = { f: "", s: "", n: "", e: "", e2: "", p: ["overview", "flame"], q: "", cmp: "", path: [], x: [],
    file: "", why: "", part: "", num: "", own: "", mem: "" };

export function encode(shown: Shown): string {
    const out: string[] = ["v=1"];
    const put = (key: string, value: string) => {
        if (value) { out.push(`${key}=${encodeURIComponent(value)}`); }
    };
    put("f", shown.f);
    put("s", shown.s);
    put("n", shown.n);
    put("e", shown.e);
    put("e2", shown.e2);
    put("p", shown.p.map(encodeURIComponent).join(","));
    put("q", shown.q);
    put("cmp", shown.cmp);
    put("path", shown.path.join("."));
    put("file", shown.file);
    put("why", shown.why);
    put("part", shown.part);
    put("num", shown.num);
    put("own", shown.own);
    put("mem", shown.mem);
    shown.x.forEach((formula) => put("x", formula));
    return `#${out.join("&")}`;
}

/** What a hash says; what it does not say, or says wrongly, is as at the start. */
export function decode(hash: string): Shown {
    const shown: Shown = { ...NOTHING, p: [...NOTHING.p], x: [] };
    for (const part of hash.replace(/^#/, "").split("&")) {
        const at = part.indexOf("=");
        if (at < 0) { continue; }
        let value: string;
        try {
            value = decodeURIComponent(part.slice(at + 1));
        } catch {
            continue;
        }
        switch (part.slice(0, at)) {
            case "f": shown.f = value; break;
            case "s": shown.s = value; break;
            case "n": shown.n = value; break;
            case "e": shown.e = value; break;
            case "e2": shown.e2 = value; break;
            case "q": shown.q = value; break;
            case "cmp": shown.cmp = value; break;
            case "file": shown.file = value; break;
            case "why": shown.why = value; break;
            case "part": shown.part = value; break;
            case "own": shown.own = value; break;
            case "mem": shown.mem = value; break;
            case "num": shown.num = value; break;
            case "x": shown.x.push(value); break;
            case "path": shown.path = value.split(".").filter((id) => /^[0-9a-f]{16}$/.test(id)); break;
            case "p": {
                const [upper, lower] = value.split(",");
                shown.p = [upper || shown.p[0], lower || shown.p[1]];
                break;
            }
            default: break;
        }
    }
    return shown;
}

/** Places, which ascend from 0, as ranges of numbers from 1. */
export function ranges(places: readonly number[]): string {
    const out: string[] = [];
    for (let at = 0; at < places.length;) {
        let end = at;
        while (places[end + 1] === places[end] + 1) { end += 1; }
        out.push(end > at ? `${places[at] + 1}-${places[end] + 1}` : String(places[at] + 1));
        at = end + 1;
    }
    return out.join(",");
}

/** Places below `count` that ranges of numbers name, in ascending order; what is no range names nothing. */
export function places(text: string, count: number): number[] {
    const found = new Set<number>();
    for (const part of text.split(",")) {
        const range = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part);
        if (!range) { continue; }
        const last = Math.min(count, Number(range[2] ?? range[1]));
        for (let number = Math.max(1, Number(range[1])); number <= last; number++) { found.add(number - 1); }
    }
    return [...found].sort((a, b) => a - b);
}
