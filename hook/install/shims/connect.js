// mortise-shim: written by mortise hook install; mortise hook uninstall deletes it.
// It sends events to the daemon of mortise through the client, and decides nothing.
import { spawn } from "node:child_process";

const CLIENT = __CLIENT__;
const PROFILE = __PROFILE__;
const DIALECT = __DIALECT__;
// The events that are registered, with what to answer when the client does not.
const EVENTS = __EVENTS__;

// ask returns the answer to an event, or {} where nothing is registered for it.
function ask(event, fields) {
  if (!EVENTS[event]) return Promise.resolve({});
  const args = [PROFILE, DIALECT, event];
  if (EVENTS[event].closed) args.push("closed");
  return new Promise((resolve) => {
    const failed = () => resolve(EVENTS[event].answer);
    let out = "";
    let child;
    try {
      child = spawn(CLIENT, args, { stdio: ["pipe", "pipe", "ignore"] });
    } catch {
      return failed();
    }
    child.on("error", failed);
    child.stdin.on("error", () => {});
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (d) => (out += d));
    child.on("close", (code) => {
      if (code !== 0) return failed();
      try {
        resolve(out.trim() ? JSON.parse(out) : {});
      } catch {
        failed();
      }
    });
    child.stdin.end(JSON.stringify({ event, cwd: process.cwd(), ...fields }));
  });
}
