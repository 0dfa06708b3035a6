// V6, right side: machine code with costs, jumps as arrows, and calls.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { compact, digits, percent } from "../data/format.ts";
import { CALL, machineOf, RETURN, type InlineFrame, type MachineCall, type MachineLine } from "../data/machine.ts";
import { shortened } from "../data/names.ts";
import { quotient, said } from "../state/events.ts";
import { about, active, baseTotal, comparison, event, inclusive, plainModel, second, self, shareOf, short, total } from "../state/store.ts";
import { Lines } from "../ui/lines.tsx";
import { cost, Link, Loading, Segments } from "../ui/parts.tsx";
import { Arrows, GUTTER, useLanes, type Arrow } from "./jumps.tsx";

export const syntax = signal<"att" | "intel">("att");
const bytes = signal(false);
const inlines = signal(true);
/** The source line that is pointed at, in either listing, and the one that was chosen in one of them. */
export const pointed = signal<{ file: number; line: number } | null>(null);
export const goalLine = signal<{ file: number; line: number; by: "source" | "machine" } | null>(null);

type Item = { kind: "inline"; frames: readonly InlineFrame[] } | { kind: "line"; line: MachineLine } | { kind: "call"; call: MachineCall } | { kind: "gap"; size: number };

export function useMachine(): MachineLine[] | undefined {
    const report = plainModel();
    const side = comparison.value === "base" && report.base ? report.base : report.side;
    if (!report.pack.head.sides[side.at].addresses) { return undefined; }
    return machineOf(report, side, active.value, event.value, second.value, syntax.value);
}

export function Machine() {
    const report = plainModel();
    const f = active.value;
    const lines = useMachine();
    const items = useMemo(() => {
        const out: Item[] = [];
        lines?.forEach((line, at) => {
            const before = lines[at - 1];
            if (before && line.addr - before.addr > 64) { out.push({ kind: "gap", size: line.addr - before.addr }); }
            if (inlines.value && (line.inline !== (before?.inline ?? line.inline) || (!before && line.inline.length > 0))) { out.push({ kind: "inline", frames: line.inline }); }
            out.push({ kind: "line", line });
            line.calls.forEach((call) => out.push({ kind: "call", call }));
        });
        return out;
    }, [lines?.length, f, event.value, second.value, syntax.value, comparison.value, inlines.value, report.side]);
    const place = useMemo(() => new Map(items.flatMap((item, at): [number, number][] => (item.kind === "line" ? [[item.line.addr, at]] : []))), [items]);
    const arrows = useMemo(() => items.flatMap((item, from): Arrow[] => (item.kind !== "line" ? [] : item.line.jumps.flatMap((jump) => {
        const to = place.get(jump.to);
        return to === undefined ? [] : [{ from, to, taken: jump.taken, executed: jump.executed }];
    }))), [items]);
    const lane = useLanes(arrows);
    const wanted = goalLine.value;
    const goal = useMemo(() => {
        if (wanted?.by === "source") {
            const at = items.findIndex((item) => item.kind === "line" && item.line.file === wanted.file && item.line.line === wanted.line);
            return at < 0 ? null : { at };
        }
        if (wanted) { return null; }
        let best = -1;
        let most = -1;
        items.forEach((item, at) => { if (item.kind === "line" && item.line.cost > most) { [best, most] = [at, item.line.cost]; } });
        return best < 0 ? null : { at: best };
    }, [items, wanted]);
    if (!lines) { return <Loading />; }
    const whole = comparison.value === "base" ? baseTotal.value : total.value;
    const own = Math.max(self(report.side)?.[f] ?? 0, 1);
    const most = Math.max(...lines.map((line) => line.cost), 1);
    const state = report.pack.head.objects.find((known) => known.object === report.objectOf[f])?.state;
    const all = inclusive(comparison.value === "base" && report.base ? report.base : report.side)?.[f] ?? whole;
    const share = shareOf(whole, all);
    const texts = lines.some((line) => line.text);
    return (
        <div class="view">
            <div class="bar-tools">
                <Segments label="Syntax" value={syntax.value} onChange={(value) => { syntax.value = value; }} options={[["att", "AT&T"], ["intel", "Intel"]]} />
                <button type="button" class="quiet" aria-pressed={bytes.value} onClick={() => { bytes.value = !bytes.value; }}>Bytes</button>
                <button type="button" class="quiet" aria-pressed={inlines.value} title="Tell what was inlined, innermost first" onClick={() => { inlines.value = !inlines.value; }}>Inlined</button>
                <span class="muted">{digits(lines.filter((line) => line.executed).length)} of {digits(lines.length)} instructions executed</span>
            </div>
            {!texts && (
                <p class="hint" role="note">
                    {comparison.value === "base" ? "The base has costs by address, but no code in the report." : state === "missing" ? `${report.object(f)} was not found, or is no object file: run cg_report where it is, or name the folder above it with --root DIR.`
                        : state === "changed" ? `${report.object(f)} is not the file that ran: instructions were executed where it has none. Record the profile again.`
                        : report.pack.head.redacted ? "This report was made with --redact, which leaves code out."
                        : "The code of this function is not in the report: make it with --code all."}
                </p>
            )}
            <div class={`source machine${second.value ? " two" : ""}${arrows.length > 0 ? "" : " plain"}`}>
                <div class="line columns" aria-hidden="true">
                    <span class="number">{event.value.name}</span>{second.value && <span class="number">{second.value.name}</span>}<span /><span class="number">Address</span><span>{" Instruction"}</span>
                </div>
                <Lines label="Machine code" count={items.length} goal={goal} width={bytes.value ? 130 : 100}
                    overlay={(first, last) => <Arrows arrows={arrows} lane={lane} first={first} last={last} left={second.value ? 170 : 92} />}
                    line={(at) => {
                        const item = items[at];
                        if (item.kind === "gap") { return <div class="line gap"><span class="text muted">{"\u22ef"} {digits(item.size)} bytes further</span></div>; }
                        if (item.kind === "inline") {
                            const whole = item.frames.map(({ name, site }) => `${name}, called at ${site}`).join("\n");
                            return (
                                <div class="line inlined" title={whole}>
                                    <span />{second.value && <span />}<span /><span />
                                    <span class="text" role="cell">{item.frames.length === 0 ? "not inlined" : item.frames.slice().reverse().map(({ name }) => (short.value ? shortened(name) : name)).join(" \u2039 ")}</span>
                                </div>
                            );
                        }
                        if (item.kind === "call") {
                            const within = (comparison.value === "base" && report.base ? report.base : report.side).within(f, item.call.callee);
                            return (
                                <div class="line call">
                                    <span class="number" role="cell">{within ? "\u21bb" : <>{about.value}{cost(item.call.cost, share)}</>}</span>{second.value && <span />}<span /><span />
                                    <span class="text" role="cell">{"\u25b8 "}<Link f={item.call.callee} /> <span class="muted">{digits(item.call.count)}{"\u00d7"}{within ? ", within a cycle" : <>, {about.value}{percent(item.call.cost, all)} % inclusive</>}</span></span>
                                </div>
                            );
                        }
                        const { line } = item;
                        const lit = pointed.value && line.file === pointed.value.file && line.line === pointed.value.line && line.line > 0;
                        const [mnemonic, ...rest] = line.text.split(" ");
                        return (
                            <div class={`line${line.executed ? "" : " cold"}${lit ? " lit" : ""}`} title={line.file >= 0 ? `${report.files[line.file]}:${line.line}` : "never executed"}
                                onMouseEnter={() => { pointed.value = { file: line.file, line: line.line }; }} onMouseLeave={() => { pointed.value = null; }}
                                onClick={() => { if (line.line > 0) { goalLine.value = { file: line.file, line: line.line, by: "machine" }; } }}>
                                <span class="number" role="cell" title={`${digits(line.cost)} ${event.value.name}, ${percent(line.cost, own)} % of the function`}>
                                    {line.cost > 0 && <span class="bar" style={{ width: `${Math.min(100, (line.cost * 100) / most)}%` }} />}
                                    <span class="value">{line.executed ? cost(line.cost, share) : "0"}</span>
                                </span>
                                {second.value && <span class="number" role="cell">{line.second !== 0 ? said(second.value, quotient(second.value, line.second, line.under)) : ""}</span>}
                                <span role="cell" />
                                <span class="number muted mono" role="rowheader">{line.addr.toString(16)}</span>
                                <span class="text mono" role="cell">
                                    {bytes.value && <span class="muted bytes">{line.bytes.padEnd(31)}</span>}
                                    <span class={line.flow === CALL || line.flow === RETURN ? "t-macro" : line.flow > 0 ? "t-keyword" : undefined}>{mnemonic.padEnd(9)}</span>{rest.join(" ")}
                                    {line.jumps.map((jump) => <span key={jump.to} class="muted">{jump.executed > 0 ? `   taken ${compact(jump.taken)} of ${compact(jump.executed)}` : ""}{place.has(jump.to) ? "" : ` \u2192 ${jump.to.toString(16)}`}</span>)}
                                </span>
                            </div>
                        );
                    }} />
            </div>
        </div>
    );
}

export const gutter = GUTTER;
