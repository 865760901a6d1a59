
export const Mortise = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const a = await ask("tool.execute.before", {
      session_id: input.sessionID, cwd: directory, call: input.callID, tool: input.tool, input: output.args,
    });
    if (a.block) throw new Error(a.reason);
    if (a.args) {
      // In place: an object that was assigned anew is not used.
      for (const k of Object.keys(output.args)) if (!(k in a.args)) delete output.args[k];
      Object.assign(output.args, a.args);
    }
  },
  "tool.execute.after": async (input, output) => {
    // The result of an MCP server's tool is a list of parts.
    const parts = typeof output.output === "string" || !Array.isArray(output.content) ? null : output.content;
    const said = (p) => (p.type === "resource" ? p.resource?.text : p.text);
    const a = await ask("tool.execute.after", {
      session_id: input.sessionID, cwd: directory, call: input.callID, tool: input.tool,
      response: parts ? parts.map(said).filter(Boolean).join("\n") : output.output,
    });
    if (typeof a.output !== "string") return;
    if (parts) output.content = [{ type: "text", text: a.output }, ...parts.filter((p) => !said(p))];
    else output.output = a.output;
  },
  "chat.message": async (input, output) => {
    const prompt = (output.parts ?? []).map((p) => p.text ?? "").join("\n");
    await ask("chat.message", { session_id: input.sessionID, cwd: directory, prompt });
  },
  "experimental.session.compacting": async (input, output) => {
    const a = await ask("experimental.session.compacting", { session_id: input.sessionID, cwd: directory });
    if (a.context) output.context.push(a.context);
  },
});
