// Columns, formulas, links, searches, names, tokens and exports.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, type ColumnInfo } from "../../src/data/columns.ts";
import { compact, percent, ratio } from "../../src/data/format.ts";
import { tokens, type Language, type State } from "../../src/data/highlight.ts";
import { namespaceOf, shortened, stableId, visible } from "../../src/data/names.ts";
import { parse } from "../../src/state/formula.ts";
import { linesOf } from "../../src/data/model.ts";
import { narrow } from "../../src/state/search.ts";
import { parseQuery } from "../../src/state/query.ts";
import { csv } from "../../src/ui/save.ts";
import { toldOf, type TableColumn } from "../../src/ui/table.tsx";
import * as url from "../../src/state/url.ts";

/** Columns as pack.rs writes them. */
function packed(values: bigint[], width: number, signed: boolean, delta: boolean): Uint8Array {
    let last = 0n;
    const folded = values.map((value) => {
        const step = delta ? BigInt.asIntN(64, value - last) : value;
        last = value;
        return signed || delta ? BigInt.asUintN(64, step >= 0n ? step << 1n : ((-step) << 1n) - 1n) : value;
    });
    const out = new Uint8Array(values.length * width);
    folded.forEach((value, at) => { for (let plane = 0; plane < width; plane++) { out[plane * values.length + at] = Number((value >> BigInt(8 * plane)) & 255n); } });
    return out;
}

test("columns of every width come out as they went in", () => {
    const lists: [bigint[], number, boolean, boolean][] = [
        [[1n, 255n, 0n], 1, false, false], [[256n, 65535n], 2, false, false], [[70000n, 5n], 3, false, false], [[4294967295n, 5n], 4, false, false],
        [[1n << 40n, 3n], 8, false, false], [[9007199254740993n, 1n], 8, false, false], [[-5n, 7n, 0n], 1, true, false], [[-70000n, 70000n], 3, true, false],
        [[-9223372036854775807n, 5n], 8, true, false], [[100n, 101n, 90n, 5000n], 2, true, true], [[0x401000n, 0xffffffffff600000n, 3n], 8, true, true],
    ];
    for (const [values, width, signed, delta] of lists) {
        const info: ColumnInfo = [0, 0, values.length, width, (signed || delta ? 1 : 0) + (delta ? 2 : 0)];
        const column = decode(packed(values, width, signed, delta), info);
        values.forEach((value, at) => {
            assert.equal(column.values[at], Number(value), `${values} ${width}`);
            if (value > 1n << 53n || value < -(1n << 53n)) { assert.equal(column.exact?.[at], value, "and with all digits"); }
        });
    }
    assert.deepEqual([...decode(new Uint8Array(0), [0, 0, 3, 0, 0]).values], [0, 0, 0]);
    assert.throws(() => decode(new Uint8Array(5), [0, 0, 3, 2, 0]), /damaged/);
});

test("formulas are sums of events", () => {
    const known = ["Ir", "Bcm", "Bim"].map((name, column) => ({ name, terms: [[column, 1]] as [number, number][] }));
    const terms = (text: string) => { const result = parse(text, known); return "terms" in result ? Object.fromEntries(result.terms) : result; };
    assert.deepEqual(terms("Ir + 10 Bcm"), { 0: 1, 1: 10 });
    assert.deepEqual(terms("Ir+10*(Bcm + Bim)/2 - Bim"), { 0: 1, 1: 5, 2: 4 });
    assert.deepEqual(terms("-Ir + 2.5Ir"), { 0: 1.5 });
    assert.deepEqual(terms("2(3 Ir)"), { 0: 6 });
    for (const [text, fault, at] of [["Ir +", "missing", 4], ["Ix", "no event Ix", 0], ["Ir * Bcm", "product", 5], ["1 / Ir", "a number is divided by a cost", 4],
        ["Ir / Bcm / Bim", "a ratio is divided", 11], ["Ir + Bcm / Bim", "added to a ratio", 5], ["Ir / Bcm - Bim", "added to a ratio", 11], ["Ir / (Bim - Bim)", "always 0", 0], ["Ir / 0", "division", 5],
        ["(Ir", "not closed", 3], ["Ir )", "too much", 3], ["3", "no event", 0], ["Ir - Ir", "always 0", 0], ["Ir + 1", "number is added", 5], ["", "missing", 0], ["Ir $ 2", "too much", 3]] as const) {
        const result = parse(text, known);
        assert.ok("fault" in result, text);
        assert.match(result.fault, new RegExp(fault), text);
        assert.equal(result.at, at, text);
    }
    assert.ok("fault" in parse("(".repeat(100000), known), "deep ones end, too");
});

test("a formula of anything gives terms or a fault, and nothing else", () => {
    const letters = "Ir Bcm+-*/()019. \u00d7$";
    let state = 7;
    for (let round = 0; round < 5000; round++) {
        let text = "";
        for (let at = 0; at < round % 17; at++) {
            state = (Math.imul(state, 1103515245) + 12345) >>> 0;
            text += letters[(state >>> 9) % letters.length];
        }
        const result = parse(text, [{ name: "Ir", terms: [[0, 1]] }, { name: "Bcm", terms: [[1, 1]] }]);
        assert.ok("fault" in result ? result.at >= 0 && result.at <= text.length : result.terms.every(([, factor]) => Number.isFinite(factor)), text);
    }
});

test("a link says what it was made from", () => {
    const shown: url.Shown = { f: "0123456789abcdef", s: "fedcba9876543210", n: "a&b=c#<d>", e: "CEst", e2: "D1mr", p: ["flame", "graph"], q: "/x&y/ obj:a", cmp: "base",
        path: ["0123456789abcdef", "fedcba9876543210"], x: ["A=Ir + 1 Bm", "B=2 Ir"], file: "/a b/c.c", why: "3", part: "2-3,5", num: "parent", own: "inlined", mem: "distances,line" };
    assert.deepEqual(url.decode(url.encode(shown)), shown);
    assert.deepEqual(url.decode(url.encode(url.NOTHING)), url.NOTHING);
    for (const hash of ["", "#", "#%", "#f=%E0%A4%A", "#p=", "#path=zz.1", "#=&==&x", "#__proto__=1&constructor=2"]) {
        const found = url.decode(hash);
        assert.deepEqual(found.p, url.NOTHING.p);
        assert.deepEqual(found.path, []);
    }
});

test("searches are understood", () => {
    assert.deepEqual(parseQuery("Foo \"a b\" /^x y/ obj:libc file:M.c ns:geo self>1.5% incl<20 calls>3"), {
        words: ["foo", "a b"], patterns: ["^x y"], object: ["libc"], file: ["m.c"], space: ["geo"], fault: "",
        bounds: [{ of: "self", above: true, value: 1.5, percent: true }, { of: "incl", above: false, value: 20, percent: false }, { of: "calls", above: true, value: 3, percent: false }] });
    assert.notEqual(parseQuery("/(/").fault, "");
});

test("a word is found in the lines that have it, and in no others", () => {
    let state = 3;
    const random = (below: number) => { state = (Math.imul(state, 1103515245) + 12345) >>> 0; return (state >>> 9) % below; };
    const word = (most: number) => Array.from({ length: random(most + 1) }, () => "ab\u0130"[random(3)]).join("");
    for (let round = 0; round < 500; round++) {
        const names = Array.from({ length: random(7) }, () => word(6));
        const mask = Uint8Array.from(names, () => random(2));
        const wanted = word(3);
        const expected = names.map((name, at) => (mask[at] === 1 && name.includes(wanted) ? 1 : 0));
        narrow(mask, linesOf(names), wanted);
        assert.deepEqual([...mask], expected, `${JSON.stringify(names)} ${wanted}`);
    }
});

test("names are shortened where their brackets match, and never lose what tells them apart", () => {
    assert.equal(shortened("std::map<int, std::vector<a> >::find(int const&)"), "std::map<\u2026>::find(int const&)");
    assert.equal(shortened("<alloc::vec::Vec<T,A> as core::ops::Drop>::drop"), "<alloc::vec::Vec<\u2026> as core::ops::Drop>::drop");
    assert.equal(shortened("operator<<(std::ostream&, X<int>)"), "operator<<(std::ostream&, X<\u2026>)");
    assert.equal(shortened("bool operator< <int>(A)"), "bool operator< <int>(A)");
    assert.equal(shortened("a<b"), "a<b");
    assert.equal(shortened("f(int (*)(int) -> X<int>)"), "f(int (*)(int) -> X<\u2026>)");
});

test("namespaces are found", () => {
    assert.equal(namespaceOf("a::b::f(c::d)"), "a::b");
    assert.equal(namespaceOf("main"), "");
    assert.equal(namespaceOf("<alloc::vec::Vec<T> as core::Drop>::drop"), "alloc::vec::Vec<T>");
    assert.equal(namespaceOf("core::fmt::write"), "core::fmt");
    assert.equal(namespaceOf("void std::__sort<int*>(int*)"), "std");
});

test("stable ids are of names, not of folders", () => {
    assert.equal(stableId("/a/prog", "x.c", "f"), stableId("/b/prog", "x.c", "f"));
    assert.notEqual(stableId("prog", "x.c", "f"), stableId("prog", "x.c", "g"));
    assert.match(stableId("", "", ""), /^[0-9a-f]{16}$/);
    const seen = new Set(Array.from({ length: 50_000 }, (_, at) => stableId("prog", "x.c", `f${at}`)));
    assert.equal(seen.size, 50_000);
});

test("nothing hides in a name", () => {
    assert.equal(visible("a\u202eb\u0000\u001b\u007f\u2066"), "a\u27e8U+202E\u27e9b\u2400\u241b\u2421\u27e8U+2066\u27e9");
    assert.equal(visible("plain \u00e9 \u4e2d"), "plain \u00e9 \u4e2d");
});

test("tokens are the line, whatever it holds, and comments span lines", () => {
    const lines = ["int main() { /* a", "b */ return 'x' + 0x1f; } // end", "let s: &'a str = \"q\\\"\"; println!(\"{}\", 1..2);", "`raw", "still` x", "#include <a.h>", "\"open", "'", "\\", "", "\u00e9\u4e2d\ud83d\ude00", "!comment", "C x"];
    for (const language of ["c", "rust", "go", "fortran", "asm", "script", "none"] as Language[]) {
        let state: State = 0;
        for (const line of lines) {
            const [found, next] = tokens(line, language, state);
            assert.equal(found.map(([, text]) => text).join(""), line, `${language}: ${line}`);
            state = next;
        }
    }
    const [, open] = tokens("a /* b", "c", 0);
    assert.deepEqual(tokens("c */ int", "c", open)[0], [["comment", "c */"], ["plain", " "], ["keyword", "int"]]);
    assert.deepEqual(tokens("/* /* */ */ x", "rust", 0)[0][0], ["comment", "/* /* */ */"]);
});

test("numbers are short and true", () => {
    assert.deepEqual([0, 999, 9999, 12345, 999_499, 999_999, 1_234_567, 9e15].map(compact), ["0", "999", "9,999", "12.3 k", "999 k", "1.00 M", "1.23 M", "9.00 P"]);
    assert.deepEqual([percent(1, 3), percent(0, 3), percent(1, 0), percent(1, 1e9)], ["33.33", "0.00", "\u2013", "<0.01"]);
    assert.equal(ratio(1, 0), "\u2013");
});

test("rows are saved as numbers and text, of trees with how deep they stand", () => {
    const columns: TableColumn[] = [
        { id: "name", title: "Name", text: true, cell: (row) => ["=f", "g"][row], full: (row) => `${["=f", "g"][row]}\n/a/b.c` },
        { id: "self", title: "Self", cell: (row) => ["1.20", "\u20130.10"][row], full: (row) => ["1,234,567 Ir, 1.20 % of it", "\u22125,000 Ir"][row] },
        { id: "rate", title: "Rate", cell: (row) => ["0.5", "\u2013"][row] },
        { id: "word", title: "Word", cell: () => "", full: () => "2nd of all" },
    ];
    const { head, lines } = toldOf([0, 1], columns, (row) => ({ level: row, open: undefined }));
    assert.deepEqual(head, ["level", "Name", "Self", "Rate", "Word"]);
    assert.deepEqual(lines, [[0, "=f", 1234567, 0.5, ""], [1, "g", -5000, "\u2013", ""]]);
    assert.equal(csv(head, lines).split("\n")[1], "0,'=f,1234567,0.5,");
});
