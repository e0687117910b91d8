// Judges a server as clients in JavaScript see it: gRPC for Node with messages read from the .proto files, and fetch.
//
//     node judge.mjs HTTP_ADDRESS GRPC_ADDRESS FOLDER
//
// FOLDER is where imports of the .proto files begin. A line for each case, "ok NAME" or "FAIL NAME: why", then
// "judged N". The exit status is 1 when a case has failed.
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [http, address, folder] = process.argv.slice(2);
const definition = loader.loadSync("internal/api/oip/pb/open_inference.proto", {
  includeDirs: [folder], keepCase: true, longs: String, defaults: true, oneofs: true,
});
const { GRPCInferenceService } = grpc.loadPackageDefinition(definition).inference;
const client = new GRPCInferenceService(address, grpc.credentials.createInsecure());

const call = (method, request, deadline = Date.now() + 30_000) => new Promise((resolve, reject) => {
  client[method](request, { deadline }, (error, answer) => (error ? reject(error) : resolve(answer)));
});
const bytes = (values) => Buffer.from(Int32Array.from(values).buffer);
const ints = (raw) => [...new Int32Array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.length))];
const upTo16 = Array.from({ length: 16 }, (_, k) => k);
const input = (name, datatype, shape) => ({ name, datatype, shape });
const simple = (id = "") => ({
  model_name: "simple", id, inputs: [input("INPUT0", "INT32", [1, 16]), input("INPUT1", "INT32", [1, 16])],
  raw_input_contents: [bytes(upTo16), bytes(upTo16)],
});
const adding = (k, parameters) => ({
  model_name: "adding", parameters, inputs: [input("x", "INT32", [1, 1])], raw_input_contents: [bytes([k])],
});
const post = (path, body, headers = {}) => fetch(`http://${http}${path}`, { method: "POST", body, headers });
const json = JSON.stringify({
  inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16], data: upTo16 })),
});

const cases = {
  async metadata() {
    assert.equal((await call("ServerReady", {})).ready, true);
    const m = await call("ModelMetadata", { name: "simple" });
    assert.deepEqual(m.inputs.map((x) => [x.name, x.datatype, x.shape]),
      [["INPUT0", "INT32", ["-1", "16"]], ["INPUT1", "INT32", ["-1", "16"]]]);
    assert.equal((await call("ModelConfig", { name: "simple" })).config.max_batch_size, 8);
  },
  async infer() {
    const r = await call("ModelInfer", simple("seven"));
    assert.equal(r.id, "seven");
    assert.deepEqual(ints(r.raw_output_contents[0]), upTo16.map((k) => 2 * k));
    assert.deepEqual(ints(r.raw_output_contents[1]), upTo16.map(() => 0));
  },
  async manyAtOnce() {
    const got = await Promise.all(upTo16.map((k) => call("ModelInfer", simple(String(k)))));
    assert.deepEqual(got.map((r) => r.id), upTo16.map(String));
  },
  async sequenceOnAStream() {
    const stream = client.ModelStreamInfer();
    for (let k = 1; k <= 4; k++) {
      stream.write(adding(k, {
        sequence_id: { string_param: "node" }, sequence_start: { bool_param: k === 1 },
        sequence_end: { bool_param: k === 4 },
      }));
    }
    stream.end();
    const sums = [];
    for await (const r of stream) {
      assert.equal(r.error_message, "");
      sums.push(...ints(r.infer_response.raw_output_contents[0]));
    }
    assert.deepEqual(sums, [1, 3, 6, 10]);
  },
  async errors() {
    await assert.rejects(call("ModelInfer", { ...simple(), model_name: "none" }), { code: grpc.status.NOT_FOUND });
    await assert.rejects(call("ModelInfer", { ...simple(), raw_input_contents: [bytes([1])] }),
      { code: grpc.status.INVALID_ARGUMENT });
    await assert.rejects(call("ModelInfer", simple(), Date.now() - 1), { code: grpc.status.DEADLINE_EXCEEDED });
  },
  async cancellation() {
    const code = await new Promise((resolve) => {
      client.ModelInfer(simple(), (error) => resolve(error?.code)).cancel();
    });
    assert.equal(code, grpc.status.CANCELLED);
    assert.equal((await call("ModelInfer", simple("next"))).id, "next");
  },
  async fetchJSON() {
    const r = await post("/v2/models/simple/infer", json);
    assert.equal(r.status, 200);
    assert.deepEqual((await r.json()).outputs[0].data, upTo16.map((k) => 2 * k));
  },
  async fetchCompressed() {
    const r = await post("/v2/models/simple/infer", gzipSync(json), { "Content-Encoding": "gzip" });
    assert.equal(r.headers.get("content-encoding"), "gzip"); // fetch asks for it
    assert.equal((await r.json()).outputs.length, 2);
  },
  async fetchErrors() {
    const r = await post("/v2/models/none/infer", json);
    assert.equal(r.status, 404);
    assert.match((await r.json()).error, /none/);
  },
};

let failed = 0;
for (const [name, judge] of Object.entries(cases)) {
  try {
    await judge();
    console.log("ok", name);
  } catch (e) {
    failed++;
    const at = e.stack.split("\n").find((line) => line.includes("judge.mjs")) ?? "";
    console.log(`FAIL ${name}: ${String(e.message).split("\n")[0]} ${at}`);
  }
}
console.log("judged", Object.keys(cases).length);
client.close();
process.exit(failed ? 1 : 0);
