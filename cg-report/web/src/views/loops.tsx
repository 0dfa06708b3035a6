// V6b: loops of the active function, with what each round costs.

import { useMemo } from "preact/hooks";
import { compact, digits, percent, ratio } from "../data/format.ts";
import { INDIRECT, JUMP, RETURN, type MachineLine } from "../data/machine.ts";
import { loopsOf, type Edge, type Instruction, type Loop } from "../layout/loops.ts";
import { isRatio, quotient, said } from "../state/events.ts";
import { active, event, events, inclusive, plainModel, second, shareOf, total, WHOLE } from "../state/store.ts";
import { machineOf } from "../data/machine.ts";
import { Empty, Loading } from "../ui/parts.tsx";
import { Table } from "../ui/table.tsx";
import { goalLine, syntax } from "./machine.tsx";

/** What loops and blocks of machine code follow from; `counts` are lines whose costs are times executed. */
export function partsOfCode(lines: MachineLine[], counts: MachineLine[]): { instructions: Instruction[]; jumps: Edge[]; ends: Set<number> } {
    const jumps: Edge[] = lines.flatMap((line) => line.jumps.map(({ to, taken }) => ({ from: line.addr, to, count: taken })));
    const ends = new Set(lines.filter((line) => line.flow === RETURN || line.flow === INDIRECT || line.flow === JUMP || line.jumps.some((jump) => jump.executed === 0)).map((line) => line.addr));
    const times = new Map(counts.map((line) => [line.addr, line.cost]));
    const executed = lines.filter((line) => line.executed);
    return { jumps, ends, instructions: executed.map(({ addr, cost, second: other, under }) => ({ addr, cost, second: other, under, count: times.get(addr) ?? NaN })) };
}

/** Loops of machine code. */
export function loopsIn(lines: MachineLine[], counts: MachineLine[]): Loop[] {
    const { instructions, jumps, ends } = partsOfCode(lines, counts);
    return loopsOf(instructions, jumps, ends);
}

export function Loops() {
    const report = plainModel();
    const f = active.value;
    const { addresses, jumps } = report.pack.head.sides[0];
    const ready = f !== WHOLE && addresses && jumps;
    const lines = ready ? machineOf(report, report.side, f, event.value, second.value, syntax.value) : undefined;
    const ir = events.value.find((of) => of.name === "Ir");
    const counts = ready && ir ? machineOf(report, report.side, f, ir, undefined, syntax.value) : undefined;
    const loops = useMemo(() => (lines && counts ? loopsIn(lines, counts) : []), [lines?.length, counts?.length, f, event.value, second.value, report.side]);
    if (!addresses || !jumps) {
        return <Empty title="This profile has no jumps"><p>Loops are found by jumps between instructions: record with <code>--dump-instr=yes --collect-jumps=yes</code>.</p></Empty>;
    }
    if (!ir) { return <Empty title="No instructions were counted"><p>How often a loop runs is told by the event Ir, which this report does not have.</p></Empty>; }
    if (f === WHOLE) { return <Empty title="Choose a function"><p>Double-click a function to see its loops.</p></Empty>; }
    if (!lines || !counts) { return <Loading />; }
    const rows: number[] = [];
    const visit = (parent: number) => {
        loops.map((_, at) => at).filter((at) => loops[at].parent === parent).sort((a, b) => loops[b].cost - loops[a].cost).forEach((at) => {
            rows.push(at);
            visit(at);
        });
    };
    visit(-1);
    const at = (row: number) => loops[row];
    const place = (row: number) => lines.find((line) => line.addr === at(row).addr);
    const more = second.value;
    return (
        <Table label="Loops" rows={rows} empty="This function has no loops that were executed."
            tree={(row) => ({ level: at(row).depth, open: undefined })}
            onSelect={(row) => { const line = place(row); if (line && line.line > 0) { goalLine.value = { file: line.file, line: line.line, by: "source" }; } }}
            columns={[
                { id: "where", title: "Loop", text: true, least: 180, cell: (row) => {
                    const line = place(row);
                    const file = line && line.file >= 0 ? report.files[line.file] : "";
                    return `${file.slice(file.lastIndexOf("/") + 1)}${line && line.line > 0 ? `:${line.line}` : ""}  0x${at(row).addr.toString(16)}`;
                }, full: (row) => { const line = place(row); return line && line.file >= 0 ? `${report.files[line.file]}:${line.line}` : ""; } },
                { id: "cost", title: "Self", width: 96, hint: `Self cost of the loop's instructions in ${event.value.name}, with inner loops`, bar: (row) => at(row).cost / total.value,
                    cell: (row) => percent(at(row).cost, shareOf(total.value, inclusive()?.[f] ?? total.value)), full: (row) => digits(at(row).cost) },
                { id: "entries", title: "Entries", width: 84, hint: "How often it is entered from outside", cell: (row) => compact(at(row).entries), full: (row) => digits(at(row).entries) },
                { id: "iterations", title: "Iterations", width: 92, hint: "How often its first instruction is executed", cell: (row) => compact(at(row).iterations), full: (row) => digits(at(row).iterations) },
                { id: "each", title: "Iter./entry", width: 92, cell: (row) => ratio(at(row).iterations, at(row).entries) },
                { id: "per", title: "Cost/iter.", width: 92, cell: (row) => ratio(at(row).cost, at(row).iterations) },
                ...(more && isRatio(more) ? [{ id: "more", title: more.name, width: 104, hint: more.meaning, cell: (row: number) => said(more, quotient(more, at(row).second, at(row).under)) }]
                    : more ? [{ id: "more", title: `${more.name}/iter.`, width: 104, cell: (row: number) => ratio(at(row).second, at(row).iterations) }] : []),
            ]}
            footer={<span>{digits(loops.length)} loops; without calls</span>} />
    );
}
