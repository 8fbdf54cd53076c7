// Drives `tui-agent web --demo` in a real Chromium: node browser.mjs URL DIRECTORY. Prints what it saw as JSON.
import { createRequire } from "node:module";
import path from "node:path";

const [address, directory, modules] = process.argv.slice(2);
const load = createRequire(path.join(modules, "package.json"));
const puppeteer = await import(load.resolve("puppeteer-core"));
const { default: chromium } = await import(load.resolve("@sparticuz/chromium"));
const SIZES = { wide: [1920, 1000], phone: [390, 844] };

const browser = await puppeteer.launch({
  args: chromium.args, executablePath: await chromium.executablePath(), headless: "shell",
});
const seen = { requests: [], failed: [], steps: [] };
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1200, height: 720 });
  let drawn = "";
  let sent = "";
  let frames = 0;
  const wire = await page.createCDPSession();
  await wire.send("Network.enable");
  wire.on("Network.webSocketFrameReceived", ({ response }) => {
    frames += 1;
    drawn += response.opcode === 2 ? Buffer.from(response.payloadData, "base64").toString("utf8") : "";
  });
  wire.on("Network.webSocketFrameSent", ({ response }) => { sent += response.payloadData; });
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("requestfailed", (request) => seen.failed.push(request.url()));
  const plain = () => drawn.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "");
  const until = async (what, condition) => {
    for (let tries = 0; tries < 600; tries += 1) {
      if (condition()) {
        seen.steps.push(what);
        return;
      }
      await new Promise((go) => setTimeout(go, 100));
    }
    throw new Error(`never: ${what}; drawn last: ${plain().slice(-600)}`);
  };
  const shows = (what, text) => until(what, () => plain().includes(text));
  // Frames are drawn after they have arrived; the picture waits for two of the browser's own.
  const picture = async (name) => {
    await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))));
    await page.screenshot({ path: path.join(directory, `${name}.png`) });
  };

  await page.goto(address);
  await shows("start", "Type tour and press enter");
  seen.address = page.url();
  await until("focus", () => sent.includes('["focus"]'));
  drawn = "";
  frames = 0;
  await page.keyboard.type("explain this project");
  await page.keyboard.press("Enter");
  await shows("answer", "cache ");
  seen.frames = frames;
  await picture("stream");
  sent = "";
  await page.mouse.move(400, 300);
  await page.mouse.wheel({ deltaY: -300 });
  await until("wheel", () => /\\u001b\[<64;/.test(sent));
  await page.mouse.click(400, 200);
  await until("click", () => /\\u001b\[<0;/.test(sent));
  drawn = "";
  await page.keyboard.down("Alt");
  await page.keyboard.press("KeyT");
  await page.keyboard.up("Alt");
  await shows("tree", "Session tree");
  await picture("tree");
  await page.keyboard.press("Escape");
  for (const [name, [width, height]] of Object.entries(SIZES)) {
    sent = "";
    await page.setViewport({ width, height });
    await until(`resize ${name}`, () => sent.includes('["resize"'));
    seen[name] = JSON.parse(sent.match(/\["resize",(\{.*?\})\]/)[1]);
    await new Promise((go) => setTimeout(go, 500));
    await picture(name);
  }
  drawn = "";
  await page.click("#keys button:nth-child(5)");
  await shows("tree by button", "Session tree");
  await picture("phone-tree");
  await page.close();
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
