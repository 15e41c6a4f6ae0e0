// Everything works without this file. It suggests URLs while one is typed, lights up what hangs together in the picture, and
// keeps the figures fresh while the crawl runs. Text goes into the page as text, never as markup.
"use strict";

// Suggestions: a combobox as the ARIA practices describe it, on every field that asks for it.
for (const [number, field] of document.querySelectorAll("[data-suggest]").entries()) {
  const list = document.createElement("ul");
  list.className = "suggest";
  list.id = "suggest-" + number;
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  field.parentElement.append(list);
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  field.setAttribute("aria-expanded", "false");
  let timer, asked = "", chosen = -1;

  const close = () => {
    clearTimeout(timer);
    asked = "";
    list.hidden = true;
    chosen = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };
  const take = (item) => {
    field.value = item.textContent;
    close();
    if (field.form.getAttribute("role") === "search") field.form.submit();
  };
  const choose = (next) => {
    const items = [...list.children];
    chosen = (next + items.length) % items.length;
    items.forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
    field.setAttribute("aria-activedescendant", items[chosen].id);
    items[chosen].scrollIntoView({ block: "nearest" });
  };
  const show = (urls) => {
    list.replaceChildren(...urls.map((url, at) => {
      const item = document.createElement("li");
      item.id = list.id + "-" + at;
      item.dir = "ltr";
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      item.textContent = url;
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(item); });
      return item;
    }));
    chosen = -1;
    list.hidden = urls.length === 0;
    field.setAttribute("aria-expanded", String(!list.hidden));
  };

  field.addEventListener("input", () => {
    clearTimeout(timer);
    const text = field.value.trim();
    if (text.length < 2) return close();
    asked = text;
    timer = setTimeout(async () => {
      try {
        const answer = await fetch("/api/suggest?limit=8&q=" + encodeURIComponent(text));
        if (answer.ok && asked === text) show((await answer.json()).urls);
      } catch { close(); }
    }, 120);
  });
  field.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen < 0 ? list.children.length - 1 : chosen - 1);
    else if (event.key === "Enter" && chosen >= 0) take(list.children[chosen]);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  field.addEventListener("blur", close);
}

// The picture: the page under the pointer or with the focus, its links, and the pages at their other ends.
for (const picture of document.querySelectorAll("[data-picture]")) {
  const svg = picture.querySelector("svg");
  // Where the picture is wider than the screen: its middle, or the middle at the edge and the side that is not empty.
  const has = (anchor) => svg.querySelector(`text[text-anchor="${anchor}"]`) !== null;
  const middle = picture.scrollWidth / 2, width = picture.clientWidth, edge = 50;
  picture.scrollLeft = has("end") && has("start") ? middle - width / 2 : has("start") ? middle - edge : middle - width + edge;
  const nodes = new Map([...svg.querySelectorAll(".node")].map((node) => [node.dataset.n, node]));
  const arcs = [...svg.querySelectorAll(".arcs path")];
  const dark = () => {
    svg.classList.remove("lit");
    for (const part of svg.querySelectorAll(".on")) part.classList.remove("on");
  };
  const light = (node) => {
    dark();
    const at = node.dataset.n;
    if (at === "0") return;
    svg.classList.add("lit");
    node.classList.add("on");
    for (const arc of arcs) {
      if (arc.dataset.a !== at && arc.dataset.b !== at) continue;
      arc.classList.add("on");
      for (const end of [arc.dataset.a, arc.dataset.b]) nodes.get(end)?.classList.add("on");
    }
  };
  for (const node of nodes.values()) {
    node.addEventListener("pointerenter", () => light(node));
    node.addEventListener("pointerleave", dark);
    node.addEventListener("focus", () => light(node));
    node.addEventListener("blur", dark);
  }
}

// Figures of a crawl that runs.
const live = document.querySelector("[data-live]");
if (live) {
  const refresh = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch("/api/overview");
      if (!answer.ok) return;
      const figures = await answer.json();
      for (const place of document.querySelectorAll("[data-field]")) {
        const value = figures[place.dataset.field];
        if (typeof value === "number") place.textContent = value.toLocaleString("en-US");
      }
      if (!figures.running) {
        live.hidden = true;
        clearInterval(timer);
      }
    } catch { /* The server is gone; the figures stay as they are. */ }
  };
  const timer = setInterval(refresh, 2000);
}
