// What is typed into the search field: `substring`, `/regex/`, `obj:`, `file:`, `ns:`, `self>1%`, `incl<1000`, in any combination.

export interface Query {
    /** Lower case; all must be found in the name. */
    words: string[];
    /** Regular expressions, of which a worker knows how to end. */
    patterns: string[];
    object: string[];
    file: string[];
    space: string[];
    bounds: { of: "self" | "incl" | "calls"; above: boolean; value: number; percent: boolean }[];
    /** What could not be understood. */
    fault: string;
}

export function parseQuery(text: string): Query {
    const query: Query = { words: [], patterns: [], object: [], file: [], space: [], bounds: [], fault: "" };
    const tokens = text.match(/\/(?:[^/\\]|\\.)+\/|"[^"]*"|\S+/g) ?? [];
    for (const token of tokens) {
        const pattern = /^\/(.+)\/$/.exec(token);
        const bound = /^(self|incl|calls)([<>])(\d+(?:\.\d+)?)(%?)$/.exec(token);
        const scope = /^(obj|file|ns):(.*)$/.exec(token);
        if (pattern) {
            try {
                RegExp(pattern[1], "i");
                query.patterns.push(pattern[1]);
            } catch (error) {
                query.fault = error instanceof Error ? error.message : String(error);
            }
        } else if (bound) {
            const of = bound[1] as "self" | "incl" | "calls";
            query.bounds.push({ of, above: bound[2] === ">", value: Number(bound[3]), percent: bound[4] === "%" });
        } else if (scope) {
            const list = { obj: query.object, file: query.file, ns: query.space }[scope[1] as "obj" | "file" | "ns"];
            if (scope[2]) { list.push(scope[2].toLowerCase()); }
        } else {
            query.words.push(token.replace(/^"(.*)"$/, "$1").toLowerCase());
        }
    }
    return query;
}

export function isEmpty(query: Query): boolean {
    const { words, patterns, object, file, space, bounds } = query;
    return [words, patterns, object, file, space, bounds].every((list) => list.length === 0);
}
