// Drives an agent with the Agent Client Protocol's own client: node client.mjs FOLDER COMMAND CWD. The folder is one that build.sh
// has made. It ends with the line "ok", or with an error.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Readable, Writable } from "node:stream";

const [folder, command, cwd] = process.argv.slice(2);
const acp = await import(pathToFileURL(join(folder, "node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js")));
const { agent: call, client: called } = acp.methods;

// What the client finds wrong with a message it only logs.
console.warn = console.error = (...args) => {
  throw new Error(args.join(" "));
};

// editor runs an agent for as long as body needs it. It answers questions as answer says.
async function editor(answer, body) {
  const child = spawn(command, { stdio: ["pipe", "pipe", "inherit"] });
  const updates = [];
  const asked = [];
  const app = acp
    .client({ name: "test" })
    .onNotification(called.session.update, ({ params }) => void updates.push(params.update))
    .onRequest(called.session.requestPermission, async ({ params }) => {
      asked.push(params);
      return { outcome: await answer(params) };
    });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  await app.connectWith(stream, async (agent) => {
    const hello = await agent.request(call.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    assert.equal(hello.protocolVersion, acp.PROTOCOL_VERSION);
    assert.equal(hello.agentCapabilities.loadSession, true);
    await body(agent, { updates, asked, seen: () => texts(updates.splice(0)) });
  });
  child.stdin.end();
  const [code] = child.exitCode === null ? await once(child, "exit") : [child.exitCode];
  assert.equal(code, 0);
}

// texts joins chunks of the same kind.
function texts(updates) {
  const out = [];
  for (const u of updates) {
    const text = u.content?.text ?? `${u.title ?? ""} ${u.status ?? ""}`.trim();
    const last = out.at(-1);
    if (last?.kind === u.sessionUpdate && u.content?.text !== undefined) last.text += text;
    else out.push({ kind: u.sessionUpdate, text });
  }
  return out.map((u) => `${u.kind}: ${u.text}`);
}

const select = (optionId) => async () => ({ outcome: "selected", optionId });
const prompt = (agent, sessionId, text) => agent.request(call.session.prompt, { sessionId, prompt: [{ type: "text", text }] });

// until waits for a condition.
async function until(condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10));
}

let sessionId;

await editor(select("allow"), async (agent, { updates, asked, seen }) => {
  ({ sessionId } = await agent.request(call.session.new, { cwd, mcpServers: [] }));
  assert.equal((await prompt(agent, sessionId, "hello")).stopReason, "end_turn");
  assert.deepEqual(seen(), ["agent_thought_chunk: let me see", "agent_message_chunk: You said hello"]);

  await prompt(agent, sessionId, "pay Alice");
  assert.deepEqual(asked[0].toolCall.rawInput, { to: "Alice" });
  assert.match(seen().at(-1), /agent_message_chunk: It says: paid map\[approved:true\]/);

  const held = prompt(agent, sessionId, "hold");
  await until(() => updates.some((u) => u.sessionUpdate === "agent_message_chunk"));
  await assert.rejects(prompt(agent, sessionId, "and this"), { code: -32600 });
  await agent.notify(call.session.cancel, { sessionId });
  assert.equal((await held).stopReason, "cancelled");

  await assert.rejects(prompt(agent, "none", "hello"), { code: -32002 });
  await assert.rejects(agent.request(call.session.load, { sessionId: "none", cwd, mcpServers: [] }), { code: -32002 });
});

await editor(select("reject"), async (agent, { seen }) => {
  await agent.request(call.session.load, { sessionId, cwd, mcpServers: [] });
  const history = seen();
  assert.deepEqual(history.slice(0, 4), [
    "user_message_chunk: hello",
    "agent_thought_chunk: let me see",
    "agent_message_chunk: You said hello",
    "user_message_chunk: pay Alice",
  ]);
  await prompt(agent, sessionId, "pay Bob");
  assert.equal(seen().at(-1), "agent_message_chunk: It says: Denied: the user did not allow the call");
});

console.log("ok");
process.exit(0);
