"use strict";
// The page of `tui-agent web`: tells textual-serve's client where the program is, and sends keys a browser keeps.
const terminal = document.getElementById("terminal");
terminal.dataset.sessionWebsocketUrl = `ws://${location.host}/ws`;
terminal.dataset.fontSize = window.innerWidth < 640 ? "12" : "15";

let socket = null;
window.WebSocket = class extends window.WebSocket {
  constructor(...where) {
    super(...where);
    socket = this;
  }
};
const send = (text) => socket?.readyState === WebSocket.OPEN && socket.send(JSON.stringify(["stdin", text]));

// The program draws its first frame without the focus, and is given it then: keys go to the prompt at once.
new MutationObserver((_changes, observer) => {
  if (!document.body.classList.contains("-first-byte")) return;
  observer.disconnect();
  document.querySelector(".xterm-helper-textarea").focus();
}).observe(document.body, { attributeFilter: ["class"] });

for (const button of document.querySelectorAll("#keys button")) {
  // Not on click: the prompt keeps the focus, and with it the keyboard of a phone.
  button.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    send(button.dataset.send);
  });
}
// Browsers keep Ctrl+T, Ctrl+N and Ctrl+W for themselves: with Alt they come through.
window.addEventListener("keydown", (event) => {
  const letter = event.code.startsWith("Key") ? event.code.slice(3) : "";
  if (event.altKey && !event.ctrlKey && !event.metaKey && letter && "TNW".includes(letter)) {
    event.preventDefault();
    event.stopImmediatePropagation();
    send(String.fromCharCode(letter.charCodeAt(0) - 64));
  }
}, true);
document.getElementById("again").addEventListener("click", () => location.reload());
