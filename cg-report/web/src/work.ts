// Work beside the page: started, waited for, and ended when nobody wants its answer any more. A worker that has answered waits for the
// next question, since starting one takes longer than most answers.
//
// The program that runs there stands packed in the page, since one from file:// has nothing to load it from; it is unpacked when
// it is first needed.

import { bytesOf, inflate } from "./data/columns.ts";
import type { Job } from "./worker.ts";

let script: Promise<string> | undefined;
/** One that has nothing to do. */
let idle: Worker | undefined;

async function unpacked(): Promise<string> {
    const code = await inflate(bytesOf(document.getElementById("worker")?.textContent ?? ""));
    return URL.createObjectURL(new Blob([code as Uint8Array<ArrayBuffer>], { type: "text/javascript" }));
}

export function startWorker(job: Job, done: (answer: unknown) => void, failed?: (why: string) => void): { stop: () => void } {
    let worker: Worker | undefined;
    let wanted = true;
    const stop = () => {
        wanted = false;
        worker?.terminate();
        worker = undefined;
    };
    const fail = (why: string) => {
        stop();
        failed?.(why);
    };
    script ??= unpacked();
    script.then((url) => {
        if (!wanted) { return; }
        const used = idle ?? new Worker(url);
        idle = undefined;
        worker = used;
        used.onmessage = ({ data }) => {
            worker = undefined;
            wanted = false;
            if (idle) { used.terminate(); } else { idle = used; }
            if (data.fault) { failed?.(data.fault); } else { done(data.answer); }
        };
        used.onerror = (error) => fail(error.message || "the worker failed");
        used.postMessage(job);
    }).catch((error) => { if (wanted) { fail(String(error)); } });
    return { stop };
}
