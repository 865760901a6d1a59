
const session = (ctx) => {
  try {
    return { session_id: ctx.sessionManager.getSessionId(), transcript: ctx.sessionManager.getSessionFile() ?? "" };
  } catch {
    return { session_id: "pi-" + process.pid };
  }
};

export default function (pi) {
  pi.on("tool_call", async (event, ctx) => {
    const a = await ask("tool_call", { ...session(ctx), call: event.toolCallId, tool: event.toolName, input: event.input });
    if (a.block) return { block: true, reason: a.reason };
    if (a.input) {
      for (const k of Object.keys(event.input)) if (!(k in a.input)) delete event.input[k];
      Object.assign(event.input, a.input);
    }
  });
  pi.on("tool_result", async (event, ctx) => {
    const a = await ask("tool_result", {
      ...session(ctx), call: event.toolCallId, tool: event.toolName, input: event.input, response: event.content,
    });
    if (a.content) return { content: a.content };
  });
  pi.on("agent_end", async (event, ctx) => {
    await ask("agent_end", session(ctx));
  });
  pi.on("before_agent_start", async (event, ctx) => {
    const a = await ask("agent_start", { ...session(ctx), prompt: event.prompt });
    if (a.context) return { message: { customType: "mortise", content: a.context, display: false } };
  });
  pi.on("session_before_compact", async (event, ctx) => {
    const a = await ask("session_before_compact", { ...session(ctx), trigger: "manual" });
    if (a.cancel) return { cancel: true };
  });
  pi.on("session_compact", async (event, ctx) => {
    await ask("session_compact", { ...session(ctx), summary: event.compactionEntry?.summary ?? "" });
  });
}
