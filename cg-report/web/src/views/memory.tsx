// The data objects of the run: what was missed at each and at which of its members, by whom and in which steps, how far apart accesses
// of a line are, and which lines threads share. What is shown is the run's, whatever parts or side of the profile are chosen.

import { signal } from "@preact/signals";
import { hasMemory, memory } from "../data/memory.ts";
import { kind, type Kind } from "../state/memory.ts";
import { model } from "../state/store.ts";
import { Empty, Loading, Segments } from "../ui/parts.tsx";
import { Distances } from "./memory/distances.tsx";
import { Objects } from "./memory/objects.tsx";
import { Sharing } from "./memory/sharing.tsx";

const chosen = signal(-1);

/** Whether the report has data objects. */
export function wantsMemory(): boolean {
    return hasMemory(model().pack);
}

export function MemoryView() {
    const pack = model().pack;
    if (!hasMemory(pack)) {
        return <Empty title="This report has no data objects"><p>Record with <code>--cache-sim=yes --objects=yes</code>, and add <code>--mem mem.out.PID</code> when the report is made.</p></Empty>;
    }
    const data = memory(pack);
    if (!data) { return <Loading />; }
    const { reuse, sharing } = data;
    const kinds: [Kind, string, string][] = [["objects", "Objects", "Misses by data object, at which member, and in which steps"],
        ...(reuse ? [["distances", "Distances", "Other lines that were accessed since a line was accessed last"] as [Kind, string, string]] : []),
        ...(sharing ? [["sharing", "Sharing", "Lines that threads share"] as [Kind, string, string]] : [])];
    const wanted = data.objects.length === 0 && kind.value === "objects" ? kinds[kinds.length - 1][0] : kind.value;
    const shown = kinds.some(([id]) => id === wanted) ? wanted : "objects";
    return (
        <div class="view">
            {kinds.length > 1 && <div class="bar-tools"><Segments label="Memory" value={shown} onChange={(value) => { kind.value = value; chosen.value = -1; }} options={kinds} /></div>}
            {shown === "objects" && <Objects data={data} chosen={chosen} />}
            {shown === "distances" && reuse && <Distances data={reuse} />}
            {shown === "sharing" && sharing && <Sharing data={sharing} objects={data.objects} chosen={chosen} />}
        </div>
    );
}
