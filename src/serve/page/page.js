// Asks the server that this page came from, while one types. Everything that it shows is put in as
// text, never as markup.
"use strict";

const HITS = 10;
// Milliseconds after a key before the server is asked.
const PAUSE = 40;

const at = (id) => document.getElementById(id);
const [q, filter, sort, mode, operators] = ["q", "filter", "sort", "mode", "operators"].map(at);
let info = null;
let offset = 0;
let asked = null;
let timer = 0;

/// An element with a class, and texts and elements in it.
function make(name, kind, ...parts) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  element.append(...parts);
  return element;
}

async function ask(path, parameters, signal) {
  const query = new URLSearchParams(parameters).toString();
  const token = sessionStorage.getItem("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(query ? `${path}?${query}` : path, { headers, signal });
  const answer = await response.json();
  if (response.status === 401) {
    at("entry").hidden = false;
    at("token").focus();
  }
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

/// Name and kind of each column.
function columns() {
  return (info?.settings.columns ?? []).map((column) => {
    const [name, kind] = column.split(/:(?=[^:]*$)/);
    return { name, kind: kind ?? "word" };
  });
}

const number = (value) => Number(value).toLocaleString("en");
const count = (value, one, many) => `${number(value)} ${value === 1 ? one : many}`;

function problem(text) {
  at("problem").textContent = text ?? "";
  at("problem").hidden = !text;
}

/// What the server is asked for what stands on the page.
function wishes() {
  const wish = { q: q.value.trim() === "" ? "*" : q.value, k: HITS, offset, count: true, mode: mode.value };
  if (operators.checked) wish.syntax = "operators";
  else if (q.value.trim() !== "" && q.value.trim() !== "*") wish.prefix = true;
  if (filter.value.trim()) wish.filter = filter.value;
  if (sort.value) wish.sort = sort.value;
  if (info.settings.texts && q.value.trim() !== "") wish.snippets = true;
  const all = columns();
  if (all.length) {
    wish.return = all.map((column) => column.name).join(",");
    wish.facets = all.map((column) => (column.kind.startsWith("word") ? `${column.name}:8` : column.name)).join(",");
  }
  return wish;
}

async function search() {
  asked?.abort();
  const own = (asked = new AbortController());
  const began = performance.now();
  remember();
  if (!info) return;
  if (!q.value.trim() && !filter.value.trim() && !columns().length) {
    at("hits").replaceChildren();
    at("status").textContent = "";
    at("pages").hidden = true;
    return problem();
  }
  try {
    const answer = await ask("v1/search", wishes(), own.signal);
    problem();
    show(answer, performance.now() - began);
  } catch (error) {
    if (error.name !== "AbortError") problem(error.message);
  }
}

function show(answer, took) {
  const found = answer.found ?? answer.hits.length;
  const server = answer.us < 1000 ? `${Math.round(answer.us)} µs` : `${(answer.us / 1000).toFixed(1)} ms`;
  at("status").textContent = `${count(found, "document", "documents")}, found in ${server} (${took.toFixed(0)} ms with the way here and back)`;
  at("hits").replaceChildren(...answer.hits.map((hit) => result(hit, answer)));
  facets(answer.facets);
  const last = offset + answer.hits.length;
  at("pages").hidden = offset === 0 && last >= found;
  at("previous").disabled = offset === 0;
  at("next").disabled = last >= found;
  at("place").textContent = found ? `${number(offset + 1)} to ${number(last)} of ${number(found)}` : "";
}

/// A text with marks around parts of it, which are told by bytes of UTF-8.
function highlighted(text, parts) {
  const bytes = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  const cut = (begin, end) => decoder.decode(bytes.subarray(begin, end));
  const paragraph = make("p", "");
  let done = 0;
  for (const [begin, end] of parts ?? []) {
    paragraph.append(cut(done, begin), make("mark", "", cut(begin, end)));
    done = end;
  }
  paragraph.append(cut(done, bytes.length));
  return paragraph;
}

function values(of) {
  const list = make("dl", "values");
  for (const [name, value] of Object.entries(of ?? {})) {
    const shown = Array.isArray(value) ? value.join(", ") : value;
    if (shown !== null && shown !== "") list.append(make("div", "", make("dt", "", name), make("dd", "", String(shown))));
  }
  return list;
}

function result(hit) {
  const heading = make("h2", "", hit.name, make("span", "", q.value.trim() ? hit.score.toPrecision(4) : ""));
  const item = make("li", "", heading);
  item.tabIndex = -1;
  if (hit.snippet) item.append(highlighted(hit.snippet, hit.highlights));
  item.append(values(hit.values));
  const below = make("div", "");
  const actions = make("div", "actions");
  if (info.settings.texts) actions.append(action("Text", below, () => text(hit)));
  if (q.value.trim() && q.value.trim() !== "*") actions.append(action("Why this score", below, () => why(hit)));
  item.append(actions, below);
  return item;
}

/// A button that shows something below a hit, or takes it away again.
function action(label, below, load) {
  const button = make("button", "", label);
  button.type = "button";
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", async () => {
    const open = button.getAttribute("aria-expanded") === "true";
    for (const other of button.parentElement.children) other.setAttribute("aria-expanded", "false");
    below.replaceChildren();
    if (open) return;
    button.setAttribute("aria-expanded", "true");
    try {
      below.replaceChildren(await load());
    } catch (error) {
      below.replaceChildren(make("p", "", error.message));
    }
  });
  return button;
}

async function text(hit) {
  const found = await ask("v1/documents", { name: hit.name });
  return make("div", "text", found.text ?? "The index does not keep texts.");
}

/// What each term gives to the score, as bars.
async function why(hit) {
  const wish = { q: q.value, name: hit.name };
  if (operators.checked) wish.syntax = "operators";
  else wish.prefix = true;
  const found = await ask("v1/explain", wish);
  const table = make("table", "why", make("caption", "", `${found.length} tokens (${found.mean_length.toFixed(0)} on average), ${found.score_name} ${found.score.toPrecision(5)}`));
  const most = Math.max(...found.terms.map((term) => term.score), 1e-9);
  const shown = found.terms.filter((term) => term.tf > 0);
  if (!shown.length) return make("p", "", "No word of the query is in this document.");
  for (const term of shown) {
    const bar = make("div", "");
    bar.style.width = `${Math.max(0, (100 * term.score) / most)}%`;
    table.append(make("tr", "", make("th", "", term.term), make("td", "bar", bar), make("td", "number", term.score.toFixed(3)),
      make("td", "", `${count(term.tf, "time", "times")} here, in ${count(term.df, "document", "documents")}`)));
  }
  return table;
}

function facets(found) {
  const parts = [];
  for (const { name } of columns()) {
    const facet = found?.[name];
    if (!facet) continue;
    if (Array.isArray(facet)) {
      if (!facet.length) continue;
      const list = make("ul", "");
      for (const { value, count: times } of facet) {
        const button = make("button", "", value, make("span", "", number(times)));
        button.type = "button";
        button.addEventListener("click", () => narrow(`${name} = ${JSON.stringify(value)}`));
        list.append(make("li", "", button));
      }
      parts.push(make("h2", "", name), list);
    } else if (facet.count) {
      const range = facet.least === facet.greatest ? facet.least : `${facet.least} to ${facet.greatest}`;
      parts.push(make("h2", "", name), make("p", "", String(range)));
    }
  }
  at("facets").replaceChildren(...parts);
  at("facets").hidden = !parts.length;
}

function narrow(condition) {
  const before = filter.value.trim();
  filter.value = before ? `(${before}) and ${condition}` : condition;
  at("more").open = true;
  again();
}

function again() {
  offset = 0;
  search();
}

/// The address names what is searched for, so that it can be kept and shared.
function remember() {
  const wish = {};
  if (q.value) wish.q = q.value;
  if (filter.value.trim()) wish.filter = filter.value;
  if (sort.value) wish.sort = sort.value;
  if (mode.value !== "or") wish.mode = mode.value;
  if (operators.checked) wish.operators = "1";
  if (offset) wish.offset = offset;
  const query = new URLSearchParams(wish).toString();
  history.replaceState(null, "", query ? `?${query}` : location.pathname);
}

function recall() {
  const wish = new URLSearchParams(location.search);
  q.value = wish.get("q") ?? "";
  filter.value = wish.get("filter") ?? "";
  mode.value = wish.get("mode") === "and" ? "and" : "or";
  operators.checked = wish.has("operators");
  offset = Math.max(0, Number(wish.get("offset")) || 0);
  at("more").open = Boolean(filter.value || wish.has("sort") || operators.checked || mode.value === "and");
  return wish.get("sort") ?? "";
}

function age(seconds) {
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"]];
  for (const [length, unit] of units) {
    const whole = Math.floor(seconds / length);
    if (whole) return count(whole, unit, `${unit}s`);
  }
  return "less than a minute";
}

async function about() {
  info = await ask("v1/info", {});
  const made = age(Date.now() / 1000 - info.created);
  at("about").textContent = `${number(info.documents)} documents, ${number(info.terms)} terms, generation ${info.generation}, ${made} old`;
}

async function begin() {
  const order = recall();
  try {
    await about();
  } catch (error) {
    return problem(error.message);
  }
  at("entry").hidden = true;
  const orders = columns().filter(({ kind }) => !kind.endsWith("[]"));
  const options = orders.flatMap(({ name }) => [[name, `${name}, rising`], [`${name}:desc`, `${name}, falling`]]);
  sort.replaceChildren(sort.options[0], ...options.map(([value, label]) => {
    const option = make("option", "", label);
    option.value = value;
    return option;
  }));
  sort.value = order;
  search();
}

q.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(again, PAUSE);
});
for (const field of [filter, sort, mode, operators]) field.addEventListener("change", again);
at("search").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  again();
});
at("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", at("token").value);
  begin();
});
at("previous").addEventListener("click", () => {
  offset = Math.max(0, offset - HITS);
  search();
});
at("next").addEventListener("click", () => {
  offset += HITS;
  search();
});
// "/" goes to the box; arrows go from hit to hit.
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    q.focus();
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || (typing && event.target !== q)) return;
  const hits = [...at("hits").children];
  const here = hits.findIndex((hit) => hit.contains(document.activeElement));
  if (here < 0 && (step < 0 || event.target !== q)) return;
  event.preventDefault();
  if (here + step < 0) q.focus();
  else hits[here + step]?.focus();
});
setInterval(() => about().catch(() => {}), 10000);
begin();
