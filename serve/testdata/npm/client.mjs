// Verifies streams, or runs agents, with the AG-UI protocol's own packages: node client.mjs FOLDER verify|run < INPUT. The
// folder is one that build.sh has made. It ends with the line "ok", or with an error.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { readFileSync } from "node:fs";

const [folder, mode] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const { HttpAgent, verifyEvents } = require("@ag-ui/client");
const { EventSchema } = require("@ag-ui/core/schemas");
const { from, lastValueFrom, toArray } = require("rxjs");
const input = JSON.parse(readFileSync(0, "utf8"));

// What the client repairs or ignores with a warning is wrong, too.
console.warn = (...args) => {
  throw new Error(args.join(" "));
};

// verify checks streams, each [{name, events}], against the schemas and the order of the protocol.
async function verify(streams) {
  assert(streams.length > 0);
  for (const { name, events } of streams) {
    try {
      for (const event of events) EventSchema.parse(event);
      await lastValueFrom(from(events).pipe(verifyEvents(false), toArray()));
    } catch (error) {
      throw new Error(`${name}: ${error.message}\n${events.map((e) => JSON.stringify(e)).join("\n")}`);
    }
  }
}

const texts = (agent) => agent.messages.map((m) => `${m.role}: ${m.content ?? ""}`);

// failure runs an agent, and returns why that failed.
async function failure(agent, parameters) {
  let why = "";
  console.error = () => {}; // the client logs it
  await agent.runAgent(parameters, { onRunErrorEvent: ({ event }) => void (why = event.message) }).catch((error) => (why = error.message));
  return why;
}

// run talks to the server as a web page would.
async function run({ url }) {
  const agent = new HttpAgent({ url, threadId: "web" });
  agent.addMessage({ id: "1", role: "user", content: "say good morning" });
  const first = await agent.runAgent({ runId: "first" });
  assert.equal(first.result.output, "goodmorning");
  assert.deepEqual(texts(agent), ["user: say good morning", "assistant: goodmorning"]);

  agent.addMessage({ id: "2", role: "user", content: "ask" });
  await agent.runAgent();
  const [asked] = agent.pendingInterrupts;
  assert.equal(asked.id, "ticket");
  assert.equal(asked.message, "really?");
  assert.equal(agent.messages.at(-1).toolCalls[0].id, asked.toolCallId);
  await agent.runAgent({ resume: [{ interruptId: asked.id, status: "resolved", payload: { approved: true } }] });
  assert.equal(agent.pendingInterrupts.length, 0);
  assert.deepEqual(texts(agent).slice(-2), ['tool: decided {"approved":true}', 'assistant: decided {"approved":true}']);

  agent.addMessage({ id: "3", role: "user", content: "say bye" });
  await agent.runAgent();
  assert.equal(texts(agent).at(-1), "assistant: bye");

  const page = await fetch(new URL("/v1/threads/web/messages", url)).then((r) => r.json());
  const said = page.messages.filter((m) => m.message.role === "user").map((m) => m.message.id);
  assert.deepEqual(said, ["1", "2", "3"]);

  assert.match(await failure(agent, { tools: [{ name: "x", description: "y", parameters: {} }] }), /tools of the client cannot be called/);
  const broken = new HttpAgent({ url, threadId: "broken", initialMessages: [{ id: "1", role: "user", content: "fail" }] });
  assert.notEqual(await failure(broken), "");

  // A client that aborts its run cancels it, if it said so.
  const held = new HttpAgent({ url: url + "?on_disconnect=cancel", threadId: "held", initialMessages: [{ id: "1", role: "user", content: "hold" }] });
  const running = held.runAgent({ runId: "held" }, { onStepStartedEvent: () => held.abortRun() });
  await running.catch(() => {});
  for (;;) {
    const r = await fetch(new URL("/v1/runs/held", url)).then((r) => r.json());
    if (r.status === "done") {
      assert.equal(r.termination, "cancelled");
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

await { verify, run }[mode](input);
console.log("ok");
process.exit(0);
