// The run that goes on: what it does at the moment, how fast it counts, and what it can be told.

import { useEffect, useRef, useState } from "preact/hooks";
import { compact, digits, percent, plural } from "../data/format.ts";
import { costOf, every, live, rates, tell, telling, type LiveThread } from "../state/live.ts";
import { activate, model, partsShown } from "../state/store.ts";
import { prepare, useSize } from "../ui/canvas.ts";
import { styleColour } from "../ui/colours.ts";
import { Empty } from "../ui/parts.tsx";

/** Costs a second as a strip of bars. */
function Strip({ event }: { event: string }) {
    const { ref, width, height } = useSize<HTMLDivElement>();
    const canvas = useRef<HTMLCanvasElement>(null);
    const list = rates.value;
    const known = list.filter((rate) => !Number.isNaN(rate));
    const most = Math.max(...known, 1);
    useEffect(() => {
        const paint = canvas.current && prepare(canvas.current, width, height);
        if (!paint) { return; }
        paint.fillStyle = styleColour("--accent");
        list.forEach((rate, at) => {
            if (Number.isNaN(rate)) { return; }
            const x = width - (list.length - at) * 4;
            paint.fillRect(x, height - (rate / most) * height, 3, (rate / most) * height);
        });
    }, [list, width, height]);
    const now = list[list.length - 1];
    return (
        <div class="live-strip">
            <div ref={ref}><canvas ref={canvas} aria-hidden="true" /></div>
            <p class="muted">{now === undefined || Number.isNaN(now) ? "\u2013" : compact(now)} {event} a second{known.length > 0 && `, at most ${compact(most)}`}</p>
        </div>
    );
}

/** The calls that go on in a thread, the outermost at the top, as wide as their share of the thread's cost so far. */
function Stack({ thread, event }: { thread: LiveThread; event: string }) {
    const report = model();
    const whole = Math.max(Number(thread.total[0] ?? 0), 1);
    return (
        <section class="live-stack" aria-label={`Thread ${thread.id}`}>
            <h3>Thread {thread.id} <span class="muted number">{digits(Number(thread.total[0] ?? 0))} {event} in this part</span></h3>
            <ol>
                {thread.frames.map((frame, at) => {
                    const cost = Number(frame.cost[0] ?? 0);
                    const f = report.names.indexOf(frame.function);
                    return (
                        <li key={at}>
                            <span class="bar" style={{ width: `${Math.min(100, (cost * 100) / whole)}%` }} />
                            <span class="number" title={`${digits(cost)} ${event}`}>{percent(cost, whole)} %</span>
                            {f >= 0 ? <button type="button" class="link" onClick={() => activate(f)}>{frame.function}</button> : <span>{frame.function}</span>}
                            <span class="muted number">{digits(Number(frame.calls))}{"\u00d7"}</span>
                        </li>
                    );
                })}
            </ol>
        </section>
    );
}

export function Live() {
    const status = live.value;
    const [sure, setSure] = useState(false);
    if (!status) { return <Empty title="Asking the run \u2026" />; }
    const event = status.events[0] ?? "";
    const busy = telling.value;
    const parts = partsShown();
    return (
        <div class="overview live">
            <section class="card wide">
                <h2>{status.command || `Process ${status.pid}`}</h2>
                <p role="status">
                    {status.ended ? "The run has ended; the report is whole." : `Process ${status.pid} runs under ${status.tool}${status.instrumentation ? "" : ", and counts nothing at the moment"}.`}
                    {" "}{plural(parts, "part")} in this report{status.ended ? "" : `; part ${digits(status.part)} is being counted: ${digits(costOf(status))} ${event} so far`}.
                </p>
                {status.fault && <p class="fault" role="alert">{status.fault}</p>}
                {!status.ended && (
                    <p class="buttons">
                        <button type="button" disabled={busy} title="Write what was counted as a part, and show it" onClick={() => void tell("dump")}>Dump</button>{" "}
                        <button type="button" disabled={busy} title="Forget what was counted since the last part" onClick={() => void tell("zero")}>Zero</button>{" "}
                        <button type="button" disabled={busy} onClick={() => void tell(status.instrumentation ? "instrumentation/off" : "instrumentation/on")}>Instrumentation {status.instrumentation ? "off" : "on"}</button>{" "}
                        <label class="choice">Dump every <select value={String(every.value)} onChange={(change) => { every.value = Number(change.currentTarget.value); }}>
                            <option value="0">never</option><option value="5">5 s</option><option value="15">15 s</option><option value="60">minute</option>
                        </select></label>{" "}
                        {sure
                            ? <><button type="button" class="danger" disabled={busy} onClick={() => { setSure(false); void tell("kill"); }}>End the program, really</button>{" "}<button type="button" onClick={() => setSure(false)}>No</button></>
                            : <button type="button" disabled={busy} title="End the program; its profile is written" onClick={() => setSure(true)}>Kill {"\u2026"}</button>}
                    </p>
                )}
            </section>
            {!status.ended && <section class="card wide"><h3>Cost a second</h3><Strip event={event} /></section>}
            {!status.ended && (
                <section class="card wide">
                    <h3 title="Calls that go on, with what they have cost since the part began">At the moment</h3>
                    {status.threads.every((thread) => thread.frames.length === 0) && <p class="muted">{status.tool === "cachegrind" ? "Cachegrind follows no calls." : "No call is known to go on."}</p>}
                    {status.threads.map((thread) => <Stack key={thread.id} thread={thread} event={event} />)}
                </section>
            )}
        </div>
    );
}
