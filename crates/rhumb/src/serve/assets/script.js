// Everything works without this file. It completes what is typed, walks through results by keys, lights up what hangs together in
// the picture, and keeps the figures fresh while the crawl runs. Text goes into the page as text, never as markup.
"use strict";

// Suggestions: a combobox as the ARIA practices describe it, on every field that names whom to ask. A URL is taken as a whole; of a
// query the last word is completed, so that Tab takes it and the next word can follow.
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
  const place = field.dataset.suggest, is_query = "query" in field.dataset;
  let timer, asked = "", chosen = -1;

  const close = () => {
    clearTimeout(timer);
    asked = "";
    list.hidden = true;
    chosen = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };
  const take = (item, go = true) => {
    field.value = item.textContent + (go ? "" : " ");
    close();
    if (go && field.form.getAttribute("role") === "search") field.form.requestSubmit();
  };
  const choose = (next) => {
    const items = [...list.children];
    chosen = (next + items.length) % items.length;
    items.forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
    field.setAttribute("aria-activedescendant", items[chosen].id);
    items[chosen].scrollIntoView({ block: "nearest" });
  };
  const show = (texts) => {
    list.replaceChildren(...texts.map((text, at) => {
      const item = document.createElement("li");
      item.id = list.id + "-" + at;
      item.dir = is_query ? "auto" : "ltr";
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      item.textContent = text;
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(item); });
      return item;
    }));
    chosen = -1;
    list.hidden = texts.length === 0;
    field.setAttribute("aria-expanded", String(!list.hidden));
  };

  field.addEventListener("input", () => {
    clearTimeout(timer);
    const text = is_query ? field.value.trimStart() : field.value.trim();
    if (text.length < 2 || text !== text.trimEnd()) return close();
    asked = text;
    timer = setTimeout(async () => {
      try {
        const answer = await fetch(place + (is_query ? "?q=" : "?limit=8&q=") + encodeURIComponent(text));
        if (!answer.ok) return;
        const found = await answer.json();
        if (asked === text) show(is_query ? found[1] : found.urls);
      } catch { close(); }
    }, 120);
  });
  field.addEventListener("keydown", (event) => {
    if (list.hidden || event.isComposing) return;
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen < 0 ? list.children.length - 1 : chosen - 1);
    else if (event.key === "Enter" && chosen >= 0) take(list.children[chosen]);
    else if (event.key === "Tab" && chosen >= 0 && !event.shiftKey) take(list.children[chosen], false);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  field.addEventListener("blur", close);
}

// Keys: / to the field, Escape out of it, j and k or the arrows from result to result, n and p from page to page.
{
  const field = document.querySelector("[data-query]") ?? document.querySelector("header [data-suggest]");
  const results = [...document.querySelectorAll(".results h2 a")];
  const at = () => results.findIndex((link) => link.closest("li").contains(document.activeElement));
  const go = (next) => {
    if (next < 0) field?.focus();
    else if (next < results.length) {
      results[next].focus({ preventScroll: true });
      results[next].closest("li").scrollIntoView({ block: "nearest" });
    }
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const { key } = event, here = document.activeElement;
    if (here === field && key === "Escape") field.blur();
    else if (here === field && key === "ArrowDown" && results.length > 0) go(0);
    else if (here?.closest("input, textarea, select, [contenteditable]")) return;
    else if (key === "/" && field) {
      field.focus();
      field.select();
    } else if (key === "j" && results.length > 0) go(at() + 1);
    else if (key === "k" && results.length > 0) go(Math.max(at() - 1, 0));
    else if (key === "ArrowDown" && results.length > 0 && (here === document.body || at() >= 0)) go(at() + 1);
    else if (key === "ArrowUp" && at() >= 0) go(at() - 1);
    else if (key === "n" || key === "p") {
      const link = document.querySelector(`.pager a[rel="${key === "n" ? "next" : "prev"}"]`);
      if (!link) return;
      link.click();
    } else return;
    event.preventDefault();
  });
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
