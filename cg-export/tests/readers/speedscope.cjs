// Prints what speedscope's own importer makes of files, as JSON: for each profile its name, its total and the self weight
// of each frame. FOLDER is that of the npm package.
//
//   node speedscope.cjs FOLDER FILE...
//
// The package has the importer only inside of its page. So the page's script is run without a page, up to where it would
// draw, and the importer is taken out by its exported name.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const [folder, ...files] = process.argv.slice(2);
const release = path.join(folder, 'dist', 'release');
const script = fs.readdirSync(release).find((name) => /^speedscope.*\.js$/.test(name));
let text = fs.readFileSync(path.join(release, script), 'utf8');
const name = text.match(/importProfileGroupFromText:\(\)=>([\w$]+)/)[1];
const start = `async function ${name}(`;
if (!text.includes(start)) throw new Error('the importer is not where it was');
text = text.replace(start, () => `globalThis.importer=(...a)=>${name}(...a);${start}`);

// Whatever the page wants of its surroundings is there and does nothing.
const nothing = () => new Proxy(function () {}, {
    get: (target, key) => {
        if (key === Symbol.toPrimitive) return () => '';
        if (key === Symbol.iterator) return function* () {};
        if (key === 'then') return undefined;
        return target[key] ??= nothing();
    },
    apply: () => nothing(),
    construct: () => nothing(),
});
const context = vm.createContext({
    console: { log() {}, warn() {}, error() {}, time() {}, timeEnd() {}, assert() {} },
    document: nothing(), navigator: nothing(), localStorage: nothing(), Image: nothing(),
    location: { hash: '', protocol: 'file:', search: '' }, setTimeout, clearTimeout, TextDecoder, TextEncoder,
    performance, requestAnimationFrame() {}, matchMedia: nothing(), addEventListener() {},
    atob, btoa, URL, Blob, File, FileReader: nothing(), DOMParser: nothing(), WebAssembly, Uint8Array, ArrayBuffer, DataView, BigInt,
});
context.window = context;
context.self = context;
let stopped = '';
try {
    vm.runInContext(text, context);
} catch (error) {
    stopped = error.stack;
}
(async () => {
    // The importer's modules are made ready in the background.
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (!context.importer) throw new Error(`speedscope did not start: ${stopped}`);
    const output = [];
    for (const file of files) {
        const group = await context.importer(path.basename(file), fs.readFileSync(file, 'utf8'));
        if (!group) throw new Error(`${file}: speedscope does not know this`);
        const profiles = group.profiles.map((profile) => {
            const self = {};
            profile.forEachFrame((frame) => {
                self[frame.name] = (self[frame.name] ?? 0) + frame.getSelfWeight();
            });
            return { name: profile.getName(), total: profile.getTotalWeight(), self };
        });
        output.push(profiles);
    }
    console.log(JSON.stringify(output));
})().catch((error) => {
    console.error(error);
    process.exit(1);
});
