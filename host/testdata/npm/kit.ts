// A plugin on Extism's kit for AssemblyScript, for TestCorpus_npm.
import { Config, Host, LogLevel, Var } from "@extism/as-pdk";

function myAbort(message: string | null, fileName: string | null, lineNumber: u32, columnNumber: u32): void {}

export function echo(): i32 {
  Host.output(Host.input());
  return 0;
}

export function settings(): i32 {
  const thing = Config.get("thing");
  const empty = Config.get("empty");
  const none = Config.get("none");
  Host.outputString((thing == null ? "null" : thing) + "," + (empty == null ? "null" : "set") + "," + (none == null ? "null" : "set"));
  return 0;
}

export function variables(): i32 {
  Var.set("a", String.UTF8.encode(Host.inputString()).byteLength > 0 ? Host.input() : Uint8Array.wrap(String.UTF8.encode("nothing")));
  const a = Var.getString("a");
  Var.remove("a");
  const gone = Var.getString("a");
  Host.outputString((a == null ? "null" : a) + "," + (gone == null ? "null" : gone));
  return 0;
}

export function logs(): i32 {
  Host.log(LogLevel.Info, Host.inputString());
  Host.log(LogLevel.Error, "");
  return 0;
}

// Allocates more than a page in each call.
export function grows(): i32 {
  let all = "";
  for (let i = 0; i < 2000; i++) all += "some text ";
  Host.outputString(all.length.toString());
  return 0;
}
