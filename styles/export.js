// What the page of an exported session does: search, folding, one way through the tree. It reads the page and nothing else.
(() => {
  "use strict";
  const $ = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const stretches = new Map(all(".stretch").map((one) => [one.dataset.number, one]));
  const below = (number) => [...stretches.values()].filter((one) => one.dataset.up === number);
  const bar = $("#tools");
  bar.hidden = false;

  // -- one way through the tree: from the beginning to a branch, and on along its first branches

  function showWay(number) {
    const way = new Set();
    for (let at = number; stretches.has(at); at = stretches.get(at).dataset.up) way.add(at);
    for (let next = below(number)[0]; next; next = below(next.dataset.number)[0]) way.add(next.dataset.number);
    for (const [name, one] of stretches) one.hidden = !way.has(name);
    for (const link of all("[data-way]")) link.classList.toggle("here", way.has(link.dataset.way));
    $("#every").hidden = way.size === stretches.size;
  }

  function showAll() {
    for (const one of stretches.values()) one.hidden = false;
    for (const link of all("[data-way]")) link.classList.remove("here");
    $("#every").hidden = true;
  }

  function reveal(target) {
    const stretch = target.closest(".stretch");
    if (stretch && stretch.hidden) showWay(stretch.dataset.number);
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView({ block: "center" });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (!link) return;
    if (link.dataset.way) showWay(link.dataset.way);
    const target = document.getElementById(link.getAttribute("href").slice(1));
    if (target) reveal(target);
  });
  $("#every").addEventListener("click", showAll);

  // -- folding

  $("#open").addEventListener("click", () => all("main details").forEach((one) => { one.open = true; }));
  $("#fold").addEventListener("click", () => all("main details").forEach((one) => { one.open = false; }));

  // -- search: what has the words is marked; Enter goes on, Shift+Enter back

  const field = $("#search"), count = $("#count");
  const blocks = all(".stretch > :not(.ways)");
  const texts = blocks.map((one) => one.textContent.toLowerCase());
  let hits = [], at = -1, waiting = 0;

  function paint(words) {
    if (!window.Highlight || !CSS.highlights) return;
    const ranges = [];
    for (const one of hits.slice(0, 500)) {
      const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
      while (words && walker.nextNode()) {
        const text = walker.currentNode.data.toLowerCase();
        for (let from = text.indexOf(words); from >= 0; from = text.indexOf(words, from + words.length)) {
          const range = new Range();
          range.setStart(walker.currentNode, from);
          range.setEnd(walker.currentNode, from + words.length);
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  }

  function go(step) {
    if (!hits.length) return;
    hits[at]?.classList.remove("now");
    at = (at + step + hits.length) % hits.length;
    hits[at].classList.add("now");
    reveal(hits[at]);
    if (hits[at].tagName !== "DETAILS") for (const one of all("details", hits[at])) one.open = one.open || one.textContent.toLowerCase().includes(field.value.trim().toLowerCase());
    count.textContent = `${at + 1} of ${hits.length}`;
  }

  function search() {
    const words = field.value.trim().toLowerCase();
    for (const one of hits) one.classList.remove("hit", "now");
    hits = words ? blocks.filter((_one, index) => texts[index].includes(words)) : [];
    for (const one of hits) one.classList.add("hit");
    at = -1;
    count.textContent = words ? `${hits.length} found` : "";
    paint(words);
  }

  field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 120); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { field.value = ""; search(); }
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (at < 0) search();
    go(event.shiftKey ? -1 : 1);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
  });
})();
