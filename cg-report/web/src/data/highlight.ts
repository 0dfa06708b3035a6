// Tokens of a line of source, for colours: comments, strings, numbers and keywords of the languages that profiles are of.
//
// One pass over letters with the state of the line before; nothing here makes markup.

export type Kind = "plain" | "comment" | "string" | "number" | "keyword" | "macro";
export type Token = [Kind, string];
export type Language = "c" | "rust" | "go" | "fortran" | "asm" | "script" | "none";

/** What a line inherits: 0 nothing, -1 a raw or long string, n a block comment n deep. */
export type State = number;

const KEYWORDS: Record<Language, string> = {
    c: "alignas alignof auto bool break case catch char class const constexpr continue co_await co_return co_yield decltype default delete do double else enum explicit export extern false final float for friend goto if inline int long mutable namespace new noexcept nullptr operator override private protected public register requires restrict return short signed sizeof static static_assert static_cast struct switch template this throw true try typedef typename union unsigned using virtual void volatile while concept",
    rust: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while union",
    go: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var true false nil",
    fortran: "allocatable allocate call case character complex contains cycle data deallocate dimension do double else elseif end enddo endif exit external function go if implicit in inout integer intent interface intrinsic kind logical module none only out parameter pointer precision print program pure read real recursive result return save select stop subroutine target then type use where while write",
    asm: "",
    script: "and as async await break case class const continue def del do elif else elsif end except export extends false finally for foreach from function global if import in instanceof is lambda let local module my namespace new nil none None not null or our pass print private protected public raise require return self static sub super switch then this throw true True False try typeof undef unless until use var void while with yield",
    none: "",
};

const words = new Map<Language, Set<string>>();

export function languageOf(file: string): Language {
    const name = file.toLowerCase();
    if (/\.(c|h|cc|cpp|cxx|c\+\+|hh|hpp|hxx|inl|ipp|tcc|m|mm|cu|java|cs|kt|swift|d|zig|def|y|l|ypp|tpp|scala)$/.test(name)) { return "c"; }
    if (name.endsWith(".rs")) { return "rust"; }
    if (name.endsWith(".go")) { return "go"; }
    if (/\.(f|for|f77|f90|f95|f03|f08)$/.test(name)) { return "fortran"; }
    if (/\.(s|asm|nasm)$/.test(name)) { return "asm"; }
    if (/\.(py|pyx|js|mjs|ts|tsx|jsx|php|pl|pm|rb|lua|tcl|sh|scm|lisp|el|r|jl)$/.test(name)) { return "script"; }
    // Headers of the C++ library have no ending.
    return /(^|\/)include\/.*\/[a-z_]+$/.test(name) ? "c" : "none";
}

export function tokens(line: string, language: Language, state: State): [Token[], State] {
    if (language === "none" || line.length > 2000) { return [[["plain", line]], state]; }
    let keywords = words.get(language);
    if (!keywords) { words.set(language, (keywords = new Set(KEYWORDS[language].split(" ")))); }
    const out: Token[] = [];
    let plain = "";
    const push = (kind: Kind, text: string) => {
        if (plain) { out.push(["plain", plain]); }
        plain = "";
        out.push([kind, text]);
    };
    const slashes = language === "c" || language === "rust" || language === "go";
    const blocks = slashes || language === "asm";
    let at = 0;
    if (language === "fortran" && /^[cC*!]/.test(line) && state === 0) { return [[["comment", line]], 0]; }
    while (at < line.length) {
        const rest = line[at];
        if (state !== 0) {
            const [end, next] = state === -1 ? [line.indexOf("`", at), 0] : blockEnd(line, at, state, language === "rust");
            const stop = end < 0 ? line.length : state === -1 ? end + 1 : end;
            push(state === -1 ? "string" : "comment", line.slice(at, stop));
            state = end < 0 ? (state === -1 ? -1 : next) : 0;
            at = stop;
            continue;
        }
        const two = line.slice(at, at + 2);
        if ((slashes && two === "//") || (language === "fortran" && rest === "!") || (language === "script" && rest === "#")
            || (language === "asm" && (rest === "#" || rest === ";")) || (language === "script" && two === "//")) {
            push("comment", line.slice(at));
            at = line.length;
        } else if (blocks && two === "/*") {
            const [end, next] = blockEnd(line, at + 2, 1, language === "rust");
            const stop = end < 0 ? line.length : end;
            push("comment", line.slice(at, stop));
            state = end < 0 ? next : 0;
            at = stop;
        } else if (language === "c" && rest === "#" && line.slice(0, at).trim() === "") {
            const name = /^#\s*\w*/.exec(line.slice(at)) as RegExpExecArray;
            push("macro", name[0]);
            at += name[0].length;
        } else if (language === "go" && rest === "`") {
            const end = line.indexOf("`", at + 1);
            push("string", end < 0 ? line.slice(at) : line.slice(at, end + 1));
            state = end < 0 ? -1 : 0;
            at = end < 0 ? line.length : end + 1;
        } else if (rest === "\"" || (rest === "'" && !lifetime(line, at, language))) {
            const end = quoteEnd(line, at);
            push("string", line.slice(at, end));
            at = end;
        } else if (/[0-9]/.test(rest)) {
            const number = /^[0-9][0-9a-zA-Z_.']*/.exec(line.slice(at)) as RegExpExecArray;
            const text = language === "rust" ? number[0].replace(/\.\..*$/, "") : number[0];
            push("number", text);
            at += text.length;
        } else if (/[A-Za-z_$@%]/.test(rest)) {
            const word = (/^[A-Za-z_$@%][\w$]*!?/.exec(line.slice(at)) as RegExpExecArray)[0];
            const macro = language === "rust" && word.endsWith("!") && line[at + word.length] !== "=";
            const text = macro ? word : word.replace(/!$/, "");
            const known = keywords.has(language === "fortran" ? text.toLowerCase() : text);
            if (macro) { push("macro", text); } else if (known) { push("keyword", text); } else { plain += text; }
            at += text.length;
        } else {
            plain += rest;
            at += 1;
        }
    }
    if (plain) { out.push(["plain", plain]); }
    return [out, state];
}

/** Where a block comment ends, or -1 and how deep it still is. */
function blockEnd(line: string, from: number, depth: number, nests: boolean): [number, number] {
    for (let at = from; at + 1 < line.length; at++) {
        if (line[at] === "*" && line[at + 1] === "/") {
            depth -= 1;
            at += 1;
            if (depth === 0) { return [at + 1, 0]; }
        } else if (nests && line[at] === "/" && line[at + 1] === "*") {
            depth += 1;
            at += 1;
        }
    }
    return [-1, depth];
}

function quoteEnd(line: string, from: number): number {
    for (let at = from + 1; at < line.length; at++) {
        if (line[at] === "\\") { at += 1; } else if (line[at] === line[from]) { return at + 1; }
    }
    return line.length;
}

function lifetime(line: string, at: number, language: Language): boolean {
    return language === "asm" || (language === "rust" && /^'[A-Za-z_]\w*(?!')/.test(line.slice(at)) && line[at + 2] !== "'");
}
