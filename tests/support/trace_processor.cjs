// Runs Perfetto's trace processor as Perfetto builds it for its page: `node trace_processor.cjs FOLDER` hands what comes
// through standard input to it, in the messages of trace_processor.proto, and prints those that it answers.
//
// FOLDER holds engine_bundle.js and trace_processor.wasm. The engine is made for a worker of the page, which speaks to
// the page over a port. So it gets what it asks of a worker, nothing of Node.js, and a port whose other end is here.
const fs = require("node:fs");
const path = require("node:path");

const folder = process.argv[2];

class Request {
  open(method, name) {
    this.file = path.join(folder, path.basename(name));
  }
  send() {
    this.response = new Uint8Array(fs.readFileSync(this.file)).buffer;
  }
}
const tell = (...words) => console.error(...words);
const globals = {
  self: { location: { href: "http://localhost/" } },
  WorkerGlobalScope: Object,
  XMLHttpRequest: Request,
  process: undefined,
  console: { log: tell, warn: tell, error: tell },
};
new Function(...Object.keys(globals), fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"))(
  ...Object.values(globals),
);
const port = { postMessage: (answer) => fs.writeSync(1, answer) };
globals.self.onmessage({ data: port });
process.stdin.on("data", (requests) => port.onmessage({ data: requests }));
