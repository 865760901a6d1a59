// mortise-shim: written by mortise hook install; mortise hook uninstall deletes it.
// It sends events to the daemon of mortise through the client, and decides nothing.
import { spawn } from "node:child_process";

const CLIENT = __CLIENT__;
const PROFILE = __PROFILE__;
const DIALECT = __DIALECT__;
const EVENTS = new Set(__EVENTS__);
const GATES = new Set(__GATES__);

// ask returns the answer to an event, or {} where nothing is registered for it. A gate without an answer denies.
function ask(event, fields) {
  if (!EVENTS.has(event)) return Promise.resolve({});
  const args = [PROFILE, DIALECT, event];
  if (GATES.has(event)) args.push("closed");
  return new Promise((resolve) => {
    const failed = (why) => resolve(GATES.has(event) ? { block: true, reason: `mortise: ${why} (${CLIENT}); run: mortise hook doctor ${DIALECT}` } : {});
    let out = "";
    let child;
    try {
      child = spawn(CLIENT, args, { stdio: ["pipe", "pipe", "ignore"] });
    } catch (e) {
      return failed("the hook client could not be started: " + e.message);
    }
    child.on("error", (e) => failed("the hook client could not be started: " + e.message));
    child.stdin.on("error", () => {});
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (d) => (out += d));
    child.on("close", (code) => {
      if (code !== 0) return failed("the hook client did not answer");
      try {
        resolve(out.trim() ? JSON.parse(out) : {});
      } catch {
        failed("the hook client answered no JSON");
      }
    });
    child.stdin.end(JSON.stringify({ event, cwd: process.cwd(), ...fields }));
  });
}
