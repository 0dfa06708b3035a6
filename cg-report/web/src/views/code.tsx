// V6: source with costs, calls and jumps.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { digits, percent } from "../data/format.ts";
import { languageOf, tokens, type State, type Token } from "../data/highlight.ts";
import { filesOf, linesOf, topFiles, type LineCall, type SourceLine } from "../data/lines.ts";
import { visible } from "../data/names.ts";
import { quotient, said } from "../state/events.ts";
import { about, codeModel, active, baseTotal, comparison, event, file as chosenFile, inclusive, isDiff, model, second, self, shareOf, total, WHOLE } from "../state/store.ts";
import { cost, Delta, Empty, Link, Loading, Segments } from "../ui/parts.tsx";
import { InEditor } from "../ui/editor.tsx";
import { Lines } from "../ui/lines.tsx";
import { Arrows, useLanes, type Arrow } from "./jumps.tsx";
import { goalLine, Machine, pointed } from "./machine.tsx";
import { jumpsOf } from "../data/lines.ts";

const extent = signal<"around" | "whole">("around");
const scope = signal<"function" | "file">("function");
const listing = signal<"source" | "both" | "machine">("both");
const AROUND = 6;

export type Item =
    | { kind: "line"; number: number; text: string | undefined; info: SourceLine | undefined; base: SourceLine | undefined }
    | { kind: "call"; call: LineCall; number: number }
    | { kind: "gap"; from: number; to: number };

/** Lines to show: all, or those with costs and some around them. */
export function itemsOf(text: string[] | undefined, lines: Map<number, SourceLine>, base: Map<number, SourceLine> | undefined, around: number | null): Item[] {
    const counted = [...new Set([...lines.keys(), ...(base?.keys() ?? [])])].sort((a, b) => a - b);
    const wanted = new Set<number>();
    const last = text?.length ?? 0;
    if (text && around === null) { for (let number = 1; number <= last; number++) { wanted.add(number); } }
    for (const number of counted) {
        wanted.add(number);
        if (!text || around === null || number === 0) { continue; }
        for (let near = Math.max(1, number - around); near <= Math.min(last, number + around); near++) { wanted.add(near); }
    }
    const items: Item[] = [];
    let before = 0;
    for (const number of [...wanted].sort((a, b) => a - b)) {
        if (text && number > before + 1 && number !== 0) { items.push({ kind: "gap", from: before + 1, to: number - 1 }); }
        before = number;
        const info = lines.get(number);
        items.push({ kind: "line", number, text: text?.[number - 1], info, base: base?.get(number) });
        for (const call of info?.calls ?? []) { items.push({ kind: "call", call, number }); }
    }
    if (text && before < last && around !== null) { items.push({ kind: "gap", from: before + 1, to: last }); }
    return items;
}

export function Code() {
    const report = codeModel();
    const side = comparison.value === "base" && report.base ? report.base : report.side;
    const f = active.value;
    const files = f === WHOLE ? topFiles(side, event.value, report.files.length) : filesOf(side, f, event.value);
    const home = f === WHOLE ? -1 : report.fileOf[f];
    if (!files) { return <Loading />; }
    const known = files.map(([file]) => file);
    const best = known.includes(home) ? home : known[0] ?? home;
    const file = chosenFile.value >= 0 && (known.includes(chosenFile.value) || chosenFile.value === home) ? chosenFile.value : best;
    if (file < 0 || file === undefined) { return <Empty title="No costs in this function"><p>It is only known from calls: no instruction of it was counted.</p></Empty>; }
    const machine = f !== WHOLE && report.pack.head.sides[side.at].addresses && !report.inlinedApart;
    const shown = machine ? listing.value : "source";
    return (
        <div class="view">
            {f !== WHOLE && !machine && report.hasCalls && shown === "source" && <span class="hidden">Machine code needs --dump-instr=yes.</span>}
            <div class={`code ${shown}`}>
                {shown !== "machine" && <Source key={`${f} ${file}`} files={files} file={file} />}
                {shown !== "source" && <Machine key={f} />}
            </div>
            {f !== WHOLE && (
                <div class="foot">
                    <span>{machine ? "Point at a line to see where it is on the other side; click to go there." : "Machine code can be shown of profiles recorded with --dump-instr=yes."}</span>
                    {machine && <Segments label="Listing" value={listing.value} onChange={(value) => { listing.value = value; }} options={[["source", "Source"], ["both", "Both"], ["machine", "Machine code"]]} />}
                </div>
            )}
        </div>
    );
}

function Source({ files, file }: { files: [number, number][]; file: number }) {
    const report = codeModel();
    const base = comparison.value === "base";
    const side = base && report.base ? report.base : report.side;
    const f = active.value;
    const only = scope.value === "function" ? f : -1;
    const source = report.pack.head.sources.find((known) => known.file === file);
    const embedded = source?.state === "ok" || source?.state === "newer";
    const raw = embedded ? report.pack.text(`src.${file}`) : undefined;
    const lines = linesOf(side, file, report.files.length, only, event.value, second.value);
    const compared = isDiff.value && comparison.value === "delta" && report.base;
    const baseLines = compared ? linesOf(compared, file, report.files.length, only, event.value, undefined) : undefined;
    const text = useMemo(() => raw?.replace(/\n$/, "").split("\n").map((line) => visible(line.replace(/\r$/, "").replaceAll("\t", "        "))), [raw]);
    const whole = extent.value === "whole";
    const items = useMemo(() => (lines ? itemsOf(text, lines, baseLines, whole ? null : AROUND) : []), [lines?.size, only, event.value, second.value, text, whole, baseLines?.size, side]);
    const coloured = useMemo(() => {
        const language = languageOf(report.files[file]);
        const out: Token[][] = [];
        let state: State = 0;
        for (const line of text ?? []) {
            const [found, next] = tokens(line, language, state);
            out.push(found);
            state = next;
        }
        return out;
    }, [text]);
    const jumps = f !== WHOLE && report.pack.head.sides[side.at].jumps ? jumpsOf(side, file, f) : undefined;
    const arrows = useMemo(() => {
        const place = new Map(items.flatMap((item, at): [number, number][] => (item.kind === "line" ? [[item.number, at]] : [])));
        return (jumps ?? []).flatMap((jump): Arrow[] => {
            const [from, to] = [place.get(jump.from), place.get(jump.to)];
            return from === undefined || to === undefined ? [] : [{ from, to, taken: jump.taken, executed: jump.executed }];
        });
    }, [items, jumps?.length]);
    const lane = useLanes(arrows);
    const wanted = goalLine.value;
    const goal = useMemo(() => {
        if (wanted?.by === "machine" && wanted.file === file) {
            const at = items.findIndex((item) => item.kind === "line" && item.number === wanted.line);
            return at < 0 ? null : { at };
        }
        let at = -1;
        let most = -1;
        items.forEach((item, place) => {
            const size = item.kind === "line" ? item.info?.own ?? 0 : 0;
            if (size > most) { [at, most] = [place, size]; }
        });
        return at >= 0 ? { at } : null;
    }, [items, wanted]);
    if ((embedded && raw === undefined) || !lines || (compared && !baseLines)) { return <Loading />; }
    const wholeCost = base && report.base ? baseTotal.value : total.value;
    const cost0 = f === WHOLE ? wholeCost : Math.max(self(side)?.[f] ?? 0, 1);
    const widest = Math.min(600, Math.max(80, ...(text ?? []).map((line) => line.length))) + 50;
    const callees = inclusive(side);
    const share = shareOf(wholeCost, only < 0 ? wholeCost : callees?.[f] ?? wholeCost);
    const most = Math.max(...[...lines.values()].map((line) => line.own), 1);
    return (
        <div class="view">
            <div class="bar-tools">
                <label class="choice">File <select value={String(file)} onChange={(change) => { chosenFile.value = Number(change.currentTarget.value); }}>
                    {(files.some(([known]) => known === file) ? files : [[file, 0] as [number, number], ...files]).slice(0, 200).map(([known, size]) => (
                        <option key={known} value={String(known)}>{last(report.files[known]) || "(no file)"} {"\u00b7"} {percent(size, cost0)} %</option>
                    ))}
                </select></label>
                {f !== WHOLE && <Segments label="Whose costs" value={scope.value} onChange={(value) => { scope.value = value; }}
                    options={[["function", "This function", "Costs of the active function in this file"], ["file", "All in file", "Costs of all functions with code in this file"]]} />}
                {text && <Segments label="Lines" value={extent.value} onChange={(value) => { extent.value = value; }}
                    options={[["around", "Around costs"], ["whole", "Whole file"]]} />}
                {source?.state === "newer" && <span class="badge warn" title="The file was changed after the profile was written; its lines may be others.">changed since</span>}
                <span class="muted mono path" title={report.files[file]}><InEditor file={file} line={wanted?.file === file ? wanted.line : Math.min(...[...lines.keys()].filter((number) => number > 0))}>{report.files[file]}</InEditor></span>
            </div>
            {!text && <Missing state={source?.state} file={report.files[file]} />}
            <div class={`source${second.value ? " two" : ""}${compared ? " diff" : ""}${arrows.length > 0 ? " jumps" : ""}`}>
                <div class="line columns" aria-hidden="true">
                    <span class="number">{event.value.name}</span>
                    {second.value && <span class="number">{second.value.name}</span>}
                    {compared && <span class="number">{"\u0394"}</span>}
                    {arrows.length > 0 && <span />}
                    <span class="number">Line</span><span>{f === WHOLE ? "" : "Source"}</span>
                </div>
                <Lines label="Source" count={items.length} goal={goal} width={widest}
                    overlay={(first, last) => (arrows.length > 0 ? <Arrows arrows={arrows} lane={lane} first={first} last={last} left={96 + (second.value ? 84 : 0) + (compared ? 90 : 0)} /> : null)} line={(at) => {
                    const item = items[at];
                    if (item.kind === "gap") {
                        return (
                            <div class="line gap" role="cell">
                                <button type="button" onClick={() => { extent.value = "whole"; }}>{"\u22ef"} {digits(item.to - item.from + 1)} lines without costs</button>
                            </div>
                        );
                    }
                    if (item.kind === "call") {
                        const within = side.within(item.call.f, item.call.callee);
                        return (
                            <div class="line call">
                                <span class="number" role="cell" title={digits(item.call.cost)}>{within ? "\u21bb" : <>{about.value}{cost(item.call.cost, share)}</>}</span>
                                {second.value && <span />}{compared && <span />}{arrows.length > 0 && <span />}<span />
                                <span class="text" role="cell"><span aria-hidden="true">{"\u25b8"}</span> <Link f={item.call.callee} /> <span class="muted">{digits(item.call.count)}{"\u00d7"}{within ? ", within a cycle" : <>, {about.value}{percent(item.call.cost, callees && f !== WHOLE ? callees[f] : wholeCost)} % inclusive</>}</span></span>
                            </div>
                        );
                    }
                    const own = item.info?.own ?? 0;
                    return (
                        <div class={`line${item.info ? "" : " cold"}${pointed.value?.file === file && pointed.value.line === item.number && item.number > 0 ? " lit" : ""}`}
                            onMouseEnter={() => { if (item.info) { pointed.value = { file, line: item.number }; } }} onMouseLeave={() => { pointed.value = null; }}
                            onClick={() => { if (item.info) { goalLine.value = { file, line: item.number, by: "source" }; } }}>
                            <span class="number" role="cell" title={item.info ? `${digits(own)} ${event.value.name}, ${percent(own, cost0)} % of ${f === WHOLE ? "the program" : "the function"}` : ""}>
                                {item.info && own > 0 && <span class="bar" style={{ width: `${Math.min(100, (own * 100) / most)}%` }} />}
                                <span class="value">{item.info && (own > 0 || (only < 0 && item.info.calls.length === 0)) ? cost(own, share) : ""}</span>
                            </span>
                            {second.value && <span class="number" role="cell">{item.info && item.info.second !== 0 ? said(second.value, quotient(second.value, item.info.second, item.info.under)) : ""}</span>}
                            {compared && <span class="number" role="cell">{(item.info || item.base) && own !== (item.base?.own ?? 0) ? <Delta now={own} before={item.base?.own ?? 0} /> : ""}</span>}
                            {arrows.length > 0 && <span />}
                            <span class="number muted" role="rowheader">{item.number === 0 ? "\u2013" : pointed.value?.file === file && pointed.value.line === item.number ? <InEditor file={file} line={item.number}>{item.number}</InEditor> : item.number}</span>
                            <span class="text mono" role="cell">{item.number === 0 ? <em class="muted">(no line)</em> : (coloured[item.number - 1] ?? []).map(([kind, part], key) => <span key={key} class={kind === "plain" ? undefined : `t-${kind}`}>{part}</span>)}</span>
                        </div>
                    );
                }} />
            </div>
        </div>
    );
}

function Missing({ state, file }: { state: string | undefined; file: string }) {
    const { redacted, embeds } = model().pack.head;
    const why = file === "???" || file === "" ? "The profile does not know where this code comes from: build the program with -g, or install debug symbols of its libraries."
        : redacted ? "This report was made with --redact, which leaves sources out."
        : !embeds ? "This report was made with --source none."
        : state === "binary" ? "The file is no text."
        : state === "large" ? "There was no room for it in the report: raise --source-limit."
        : "The file was not found when the report was made: run cg_report where the sources are, or name their folder with -I DIR.";
    return <p class="hint" role="note">{why} Costs by line are below.</p>;
}

function last(path: string): string {
    return path.slice(path.lastIndexOf("/") + 1);
}
