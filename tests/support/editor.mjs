// A client made with the protocol's official TypeScript SDK. It runs the agent named on its command line, goes through
// the methods of the protocol one after the other, and prints what came of it as one JSON object.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [cwd, sdk, ...command] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${sdk}/`));
const acp = await import(pathToFileURL(require.resolve(`${sdk}/dist/v1/unstable/acp.js`)));
const child = spawn(command[0], command.slice(1), { cwd, stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const { agent, client: own } = acp.methods;

const told = { updates: [], reads: [], writes: [] };
const unsaved = "one\nnot saved\n";
const app = acp
  .client({ name: "test-editor" })
  .onRequest(own.session.requestPermission, () => ({ outcome: { outcome: "selected", optionId: "once" } }))
  .onRequest(own.fs.readTextFile, ({ params }) => {
    told.reads.push(params.path);
    return { content: unsaved };
  })
  .onRequest(own.fs.writeTextFile, async ({ params }) => {
    told.writes.push(params.content);
    await (await import("node:fs/promises")).writeFile(params.path, params.content);
    return {};
  })
  .onNotification(own.session.update, ({ params }) => {
    told.updates.push(params.update);
  });

const fails = async (request) => {
  try {
    await request;
  } catch (error) {
    return { code: error.code, message: error.message };
  }
  return null;
};

await app.connectWith(stream, async (context) => {
  told.hello = await context.request(agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, auth: { terminal: true }, session: { compaction: {} } },
  });
  const session = await context.request(agent.session.new, { cwd, mcpServers: [] });
  const sessionId = session.sessionId;
  told.modes = session.modes.availableModes.map((mode) => mode.id);
  const say = async (text) =>
    (await context.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] })).stopReason;
  told.stops = [await say("change it"), await say("/compact"), await say("/model openai/gpt-5-mini")];
  await context.request(agent.session.setMode, { sessionId, modeId: "plan" });
  const chosen = await context.request(agent.session.setConfigOption, { sessionId, configId: "effort", value: "high" });
  told.chosen = Object.fromEntries(chosen.configOptions.map((option) => [option.id, option.currentValue]));
  const fork = await context.request(agent.session.fork, { sessionId, cwd, mcpServers: [] });
  told.forked = fork.sessionId !== sessionId;
  await context.request(agent.session.close, { sessionId });
  told.closed = await fails(context.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "x" }] }));
  const before = told.updates.length;
  await context.request(agent.session.resume, { sessionId, cwd, mcpServers: [] });
  told.resumed = told.updates.slice(before).map((update) => update.sessionUpdate);
  await context.request(agent.session.load, { sessionId, cwd, mcpServers: [] });
  told.loaded = told.updates.slice(before).filter((update) => update.sessionUpdate === "user_message_chunk").length;
  await context.request(agent.session.close, { sessionId: fork.sessionId });
  await context.request(agent.session.delete, { sessionId: fork.sessionId });
  const listed = await context.request(agent.session.list, { cwd });
  told.listed = listed.sessions.map((row) => row.sessionId === sessionId);
  told.authenticated = await fails(context.request(agent.authenticate, { methodId: "keys" }));
  told.unknown = await fails(context.request(agent.authenticate, { methodId: "magic" }));
});
child.stdin.end();
console.log(JSON.stringify(told));
process.exit(0);
