// Samples of another profiler beside exact counts: what is measured, and where that says something else than what is counted.

import { useMemo } from "preact/hooks";
import { digits, paceOf, pacing, percent } from "../data/format.ts";
import { visible } from "../data/names.ts";
import { top } from "../layout/order.ts";
import { costs, totalOf } from "../state/events.ts";
import { events, model, sampled } from "../state/store.ts";
import { Link } from "../ui/parts.tsx";

/** What another profiler saw of a function, beside what was counted. */
export function SamplesOf({ f }: { f: number }) {
    const report = model();
    const of = sampled.value;
    const own = of && costs(report.side, "fn.self", of)?.values;
    const incl = of && costs(report.side, "fn.incl", of)?.values;
    const counted = events.value.find(({ spread }) => !spread);
    const base = counted && costs(report.side, "fn.self", counted)?.values;
    if (!of || !own || !incl || !base || !counted) { return null; }
    const [samples, whole] = [totalOf(report, report.side, of), totalOf(report, report.side, counted)];
    return (
        <p class="samples-of">
            {percent(own[f], samples)} % of samples ({digits(own[f])} {of.name}) are of it, beside {percent(base[f], whole)} % of {counted.name}: {pacing(paceOf(own[f], samples, base[f], whole))}.
            {" "}With what it calls {"\u2248\u2009"}{percent(incl[f], samples)} % of samples.
        </p>
    );
}

/** Samples of another profiler: what they are, which functions have most, and what belongs to none. */
export function Samples() {
    const report = model();
    const { samples } = report.pack.head;
    const of = sampled.value;
    const own = of && costs(report.side, "fn.self", of)?.values;
    const counted = events.value.find(({ spread }) => !spread);
    const base = counted && costs(report.side, "fn.self", counted)?.values;
    const best = useMemo(() => (own ? top(own, 8) : []), [own]);
    if (!samples || !of || !own || !base || !counted) { return null; }
    const [all, whole] = [totalOf(report, report.side, of), totalOf(report, report.side, counted)];
    const lost = samples.total - samples.matched;
    return (
        <section class="card wide samples">
            <h3 title="Measured by another profiler, and laid beside what was counted">Samples</h3>
            <p><span class="mono">{samples.name}</span> ({samples.kind}): {digits(samples.total)} {samples.event}, of which {digits(samples.matched)} ({percent(samples.matched, samples.total)} %) are of
                {" "}functions of this profile{samples.placed > 0 && <>, {percent(samples.placed, samples.matched)} % of those by instruction and the others by name</>}.</p>
            <table>
                <thead><tr><th class="number">{of.name} %</th><th class="number">{counted.name} %</th><th class="number" title={`Share of ${of.name} by share of ${counted.name}: above 1 it takes longer than its ${counted.name} say`}>{of.name}/{counted.name}</th><th>Function</th></tr></thead>
                <tbody>{best.map((f) => (
                    <tr key={f}>
                        <td class="number" title={digits(own[f])}>{percent(own[f], all)}</td><td class="number" title={digits(base[f])}>{percent(base[f], whole)}</td>
                        <td class="number">{pacing(paceOf(own[f], all, base[f], whole))}</td><td><Link f={f} /></td>
                    </tr>
                ))}</tbody>
            </table>
            {lost > 0 && (
                <details>
                    <summary>{percent(lost, samples.total)} % are of no function of this profile</summary>
                    <ul>{samples.lost.map(({ object, name, count }) => (
                        <li key={`${object} ${name}`}><span class="number">{percent(count, samples.total)} %</span> <span class="mono">{visible(name)}</span> <span class="muted mono">{visible(object)}</span></li>
                    ))}</ul>
                    {samples.unmatched > samples.lost.length && <p class="muted">and {digits(samples.unmatched - samples.lost.length)} more places</p>}
                </details>
            )}
        </section>
    );
}
