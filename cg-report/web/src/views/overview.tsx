// V0: totals, what costs most, and what to know before believing it; of the active function, if there is one.

import { useMemo } from "preact/hooks";
import { compact, digits, percent, ratio, rational } from "../data/format.ts";
import { INCOMPLETE } from "../data/model.ts";
import { costs, exactTotal, quotients, said, totalMeasure, totalOf, type Event, type Ratio } from "../state/events.ts";
import { runTotals } from "../state/runs.ts";
import { about, active, event, eventAt, events, inclusive, isDiff, model, ratios, second, secondName, self, total, WHOLE } from "../state/store.ts";
import { Delta, Link, Loading, Name } from "../ui/parts.tsx";
import { wholeOfChains } from "../layout/chains.ts";
import { TOP } from "../layout/expand.ts";
import { top } from "../layout/order.ts";
import { chains, heaviest, keyOf, treeOf, ways, wholes, type Ways } from "../state/paths.ts";
import { HottestLoop } from "./hottest.tsx";
import { Samples, SamplesOf } from "./samples.tsx";
import { Causes } from "./why.tsx";

function Ranking({ title, rows, value, of, hint, unit, mark }: { title: string; rows: number[]; value: (f: number) => number; of: number;
    hint: string; unit?: (value: number) => string; mark?: string }) {
    return (
        <section class="card">
            <h3 title={hint}>{title}</h3>
            {rows.length === 0 ? <p class="muted">none</p> : (
                <ol class="ranking">
                    {rows.map((f) => (
                        <li key={f}>
                            <span class="bar" style={{ width: `${Math.min(100, (value(f) * 100) / of)}%` }} />
                            <span class="number" title={digits(value(f))}>{mark}{unit ? unit(value(f)) : `${percent(value(f), of)} %`}</span>
                            <Link f={f} />
                        </li>
                    ))}
                </ol>
            )}
        </section>
    );
}

function Totals() {
    const report = model();
    const f = active.value;
    return (
        <section class="card totals">
            <h3>{f === WHOLE ? "Totals" : "Costs"}</h3>
            <table>
                <thead><tr>
                    <th>Event</th>
                    {f === WHOLE
                        ? <><th class="number">Total</th>{report.base && <><th class="number">Base</th><th class="number">{"\u0394"}</th><th class="number">{"\u0394 %"}</th></>}</>
                        : <><th class="number">Inclusive</th><th class="number">%</th><th class="number">Self</th><th class="number">%</th></>}
                    <th>Meaning</th>
                </tr></thead>
                <tbody>
                    {events.value.map((of, at) => <Total key={of.name} of={of} at={at} />)}
                    {ratios.value.map((of) => <RatioTotal key={of.name} of={of} />)}
                </tbody>
            </table>
        </section>
    );
}

function Total({ of, at }: { of: Event; at: number }) {
    const report = model();
    const f = active.value;
    const whole = totalOf(report, report.side, of);
    const name = <button type="button" class="link" aria-pressed={at === eventAt.value} onClick={() => { eventAt.value = at; }}>{of.name}</button>;
    if (f !== WHOLE) {
        const incl = costs(report.side, "fn.incl", of)?.values;
        const own = costs(report.side, "fn.self", of)?.values;
        return (
            <tr class={at === eventAt.value ? "chosen" : ""}>
                <th scope="row">{name}</th>
                <td class="number">{incl ? `${of.spread ? "\u2248\u2009" : ""}${digits(incl[f])}` : ""}</td><td class="number">{incl ? percent(incl[f], whole) : ""}</td>
                <td class="number">{own ? digits(own[f]) : ""}</td><td class="number">{own ? percent(own[f], whole) : ""}</td>
                <td class="muted">{of.meaning}</td>
            </tr>
        );
    }
    const before = report.base ? totalOf(report, report.base, of) : 0;
    return (
        <tr class={at === eventAt.value ? "chosen" : ""}>
            <th scope="row">{name}</th>
            <td class="number">{digits(exactTotal(report, report.side, of))}</td>
            {report.base && (
                <>
                    <td class="number">{digits(exactTotal(report, report.base, of))}</td>
                    <td class="number"><Delta now={whole} before={before} text={`${whole > before ? "+" : ""}${digits(whole - before)}`} /></td>
                    <td class="number">{before === 0 ? "\u2013" : `${whole >= before ? "+" : "\u2212"}${Math.abs(((whole - before) * 100) / before).toFixed(2)}`}</td>
                </>
            )}
            <td class="muted">{of.meaning}{of.derived ? " (computed)" : ""}</td>
        </tr>
    );
}

/** A ratio of the whole, or of a function: of sums, never a sum of ratios. A change of one is a difference of ratios. */
function RatioTotal({ of }: { of: Ratio }) {
    const report = model();
    const f = active.value;
    const shown = second.value === of;
    const name = <button type="button" class="link" aria-pressed={shown} onClick={() => { secondName.value = shown ? "" : of.name; }}>{of.name}</button>;
    if (f !== WHOLE) {
        const [incl, own] = ["fn.incl", "fn.self"].map((kind) => quotients(report.side, kind, of));
        return (
            <tr class={shown ? "chosen" : ""}>
                <th scope="row">{name}</th>
                <td class="number">{incl ? `${of.over.spread || of.under.spread ? "\u2248\u2009" : ""}${said(of, incl[f])}` : ""}</td><td /><td class="number">{own ? said(of, own[f]) : ""}</td><td />
                <td class="muted">{of.meaning}</td>
            </tr>
        );
    }
    const now = totalMeasure(report, report.side, of);
    const before = report.base ? totalMeasure(report, report.base, of) : NaN;
    return (
        <tr class={shown ? "chosen" : ""}>
            <th scope="row">{name}</th>
            <td class="number">{said(of, now)}</td>
            {report.base && (
                <>
                    <td class="number">{said(of, before)}</td>
                    <td class="number">{Number.isNaN(now - before) ? "\u2013" : <Delta now={now} before={before} text={`${now > before ? "+" : ""}${rational(now - before)}`} />}</td>
                    <td class="number">{!(before !== 0 && !Number.isNaN(now - before)) ? "\u2013" : `${now >= before ? "+" : "\u2212"}${Math.abs(((now - before) * 100) / before).toFixed(2)}`}</td>
                </>
            )}
            <td class="muted">{of.meaning} (ratio of sums)</td>
        </tr>
    );
}

/** The way that takes most at each step: from the top, or from the active function to the top and to the bottom. */
function HotPath() {
    const report = model();
    const root = active.value === WHOLE ? TOP : active.value;
    const sides = [report.side];
    const down = report.hasCalls ? ways(false, sides) : undefined;
    const up = report.hasCalls && root !== TOP ? ways(true, sides) : undefined;
    const path = useMemo(() => {
        if (!down || (root !== TOP && !up)) { return undefined; }
        const steps = (way: Ways) => {
            const tree = treeOf(way, root, { budget: 600, least: wholes(way, root)[0] * 0.02 });
            return heaviest(tree, 0.05).slice(0, 24).map((node) => ({ f: tree.fn[node], cost: tree.cost[0][node], exact: tree.exact[node] }));
        };
        const here = root === TOP ? [] : [{ f: root, cost: wholes(down, root)[0], exact: true }];
        return [...(up ? steps(up).reverse() : []), ...here, ...steps(down)];
    }, [keyOf(down), keyOf(up), root, event.value]);
    if (!report.hasCalls) { return null; }
    const hint = root === TOP ? "From the top, at each step the callee that takes most, down to 5 %"
        : "To the top, at each step the caller that brings most, and to the bottom, the callee that takes most, down to 5 % of the active function";
    return (
        <section class="card wide">
            <h3 title={hint}>{root === TOP ? "Hottest path" : "Heaviest path through it"}</h3>
            {!path ? <Loading /> : (
                <ol class="crumbs">
                    {path.map(({ f, cost, exact }, at) => (
                        <li key={`${f} ${at}`}>
                            {at > 0 && <span class="muted" aria-hidden="true">{"\u203a"}</span>}
                            <Link f={f} />
                            <span class="muted number">{exact ? "" : "\u2248\u2009"}{percent(cost, total.value)} %</span>
                        </li>
                    ))}
                </ol>
            )}
        </section>
    );
}

function Warnings() {
    const { warnings, sides } = model().pack.head;
    const all = sides.some((side) => side.addresses) ? warnings : warnings;
    if (all.length === 0) { return null; }
    return (
        <section class="card wide warnings" aria-label="Warnings">
            {all.map(({ kind, text }) => <p key={kind + text}><span aria-hidden="true">{"\u26a0"}</span> {text}</p>)}
        </section>
    );
}

/** How far runs of one thing are from each other. */
function Runs() {
    const { sides } = model().pack.head;
    if (!sides.some(({ runs }) => runs.length > 1)) { return null; }
    return (
        <section class="card wide runs">
            <h3 title="Of several runs the one with the total in the middle is shown, as a whole, so that its figures add up">Runs</h3>
            {sides.map((side, at) => {
                if (side.runs.length < 2) { return null; }
                const totals = runTotals(side, event.value);
                const [least, most] = [Math.min(...totals), Math.max(...totals)];
                return (
                    <div key={at}>
                        <p>{at === 0 ? "New" : "Base"}: {digits(side.runs.length)} runs, {least === most ? `all with ${digits(least)} ${event.value.name}`
                            : `${digits(least)} to ${digits(most)} ${event.value.name}, a spread of ${percent(most - least, totals[side.shown])} %`}</p>
                        <ul>{side.runs.map((run, number) => (
                            <li key={number}><span class="number">{digits(totals[number])}</span> <span class="mono">{run.name}</span>{number === side.shown && <span class="muted"> shown</span>}</li>
                        ))}</ul>
                    </div>
                );
            })}
        </section>
    );
}

function About() {
    const { sides, version } = model().pack.head;
    return (
        <details class="card wide about">
            <summary>About this profile</summary>
            {sides.map((side, at) => (
                <dl key={at}>
                    {sides.length > 1 && <><dt>{at === 0 ? "New" : "Base"}</dt><dd /></>}
                    {side.command && <><dt>Command</dt><dd class="mono">{side.command}</dd></>}
                    {side.creator && <><dt>Recorded by</dt><dd>{side.creator}</dd></>}
                    <dt>{side.inputs.length === 1 ? "File" : "Files, added up"}</dt>
                    <dd>{side.inputs.map(({ name, parts }) => <div key={name} class="mono">{name}{parts > 1 ? `, ${digits(parts)} parts added up` : ""}</div>)}</dd>
                    {side.inputs.flatMap(({ desc }) => desc).length > 0 && (
                        <><dt>Run</dt><dd>{[...new Set(side.inputs.flatMap(({ desc }) => desc))].slice(0, 40).map((line) => <div key={line} class="mono">{line}</div>)}</dd></>
                    )}
                </dl>
            ))}
            <dl><dt>Report</dt><dd>cg_report {version}</dd></dl>
        </details>
    );
}

function Subject() {
    const report = model();
    const f = active.value;
    const calls = report.side.now("fn.calls")[f];
    const incl = inclusive();
    const cycle = report.side.now("fn.cycle")[f];
    const seen = costs(report.side, "fn.seen", event.value)?.values;
    const numbers = report.side.column("cy.number")?.values;
    const cycleCost = costs(report.side, "cy.incl", event.value)?.values;
    const place = numbers ? numbers.indexOf(cycle) : -1;
    const told = chains(report.side, event.value, total.value);
    const within = told && wholeOfChains(told, f);
    return (
        <section class="card wide subject">
            <h2><Name f={f} /></h2>
            <p class="muted mono">{report.file(f) || "(no file)"} {"\u00b7"} {report.object(f) || "(no object)"}</p>
            <p>
                called {digits(calls)}{"\u00d7"}{incl && calls > 0 && <>, {about.value}{ratio(incl[f], calls)} {event.value.name} per call</>}
                {cycle > 0 && <> {"\u00b7"} member of cycle {cycle}{cycleCost && place >= 0 && <>, which costs {compact(cycleCost[place])} ({percent(cycleCost[place], total.value)} %) as a whole</>}</>}
            </p>
            <SamplesOf f={f} />
            {within !== undefined && !event.value.spread && incl && Math.abs(within - incl[f]) > 0 && (
                <p>By chains of calls {digits(within)} {event.value.name} ({percent(within, total.value)} %) with all that ran below it{cycle > 0 && ", also within its cycle"}.</p>
            )}
            {(report.side.now("fn.flags")[f] & INCOMPLETE) !== 0 && seen && incl && (
                <p>{"\u25d0"} incomplete: its callers saw {digits(seen[f])} {event.value.name}; what it spent with its callees is another number.</p>
            )}
        </section>
    );
}

export function Overview() {
    const report = model();
    const own = self();
    const incl = inclusive();
    const ir = events.value[0];
    const misses = events.value.find((of) => of.name === "L1m") ?? events.value.find((of) => /^[ID]1m/.test(of.name));
    const base = costs(report.side, "fn.self", ir)?.values;
    const missed = misses ? costs(report.side, "fn.self", misses)?.values : undefined;
    const rows = useMemo(() => {
        if (!own || !incl) { return undefined; }
        const rate = missed && base ? Float64Array.from(missed, (value, f) => (base[f] > 0 ? (value * 1000) / base[f] : 0)) : undefined;
        const least = base ? totalOf(report, report.side, ir) * 0.001 : 0;
        return { self: top(own, 5), incl: top(incl, 5), rate, rated: rate ? top(rate, 5, (f) => (base?.[f] ?? 0) > least) : [] };
    }, [own, incl, missed, base]);
    if (!own || !incl || !rows) { return <Loading />; }
    const whole = total.value;
    return (
        <div class="overview">
            {active.value === WHOLE ? <Warnings /> : <Subject />}
            {isDiff.value && active.value === WHOLE && <Causes most={5} />}
            <Totals />
            {active.value === WHOLE && <Runs />}
            {active.value === WHOLE && <Samples />}
            {active.value !== WHOLE && <HotPath />}
            {active.value === WHOLE && (
                <>
                    <Ranking title="Most expensive by themselves" hint="Self cost: without what they call" rows={rows.self} value={(f) => own[f]} of={whole} />
                    <Ranking title="Most expensive with callees" hint="Inclusive cost: with all that they call" rows={rows.incl} value={(f) => incl[f]} of={whole} mark={about.value} />
                    {rows.rate && misses && (
                        <Ranking title={`${misses.name} per 1,000 ${ir.name}`} hint={`Functions with more than 0.1 % of ${ir.name}`} rows={rows.rated}
                            value={(f) => rows.rate?.[f] ?? 0} of={rows.rate[rows.rated[0]] || 1} unit={(value) => value.toFixed(1)} />
                    )}
                    <HotPath />
                    <HottestLoop />
                </>
            )}
            <About />
        </div>
    );
}
