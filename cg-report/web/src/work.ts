// Work beside the page: started, waited for, and ended when nobody wants its answer any more.

import type { Job } from "./worker.ts";

declare const WORKER: string;

let script = "";

export function startWorker(job: Job, done: (answer: unknown) => void, failed?: (why: string) => void): { stop: () => void } {
    script ||= URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    const worker = new Worker(script);
    worker.onmessage = ({ data }) => {
        worker.terminate();
        if (data.fault) { failed?.(data.fault); } else { done(data.answer); }
    };
    worker.onerror = (error) => {
        worker.terminate();
        failed?.(error.message || "the worker failed");
    };
    worker.postMessage(job);
    return { stop: () => worker.terminate() };
}
