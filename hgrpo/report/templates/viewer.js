"use strict";
const { labels, trajectories } = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("filters");
const list = document.getElementById("list");
const detail = document.getElementById("detail");
const count = document.getElementById("count");
// The colour saturates at this quantile of a column's absolute values, so that outliers do not dominate.
const FULL = 0.9;
// Number of trajectories listed at first, and added whenever the end of the list is near.
const LISTED = 60;
// Longer observations are folded, to about half of this many characters.
const FOLDED = 600;
const narrow = matchMedia("(max-width: 46rem)");
const NAMES = { credit: "credit", advantage: "advantage", logprob: "log-probability", truth: "truth" };

function element(name, text, look) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (look) made.className = look;
  return made;
}

const known = (values) => values.filter((value) => value !== null);
const mark = (one) => ({ success: "✓", failure: "✗", "cut off": "…" })[one.outcome];
const when = (one) => `seed ${one.seed}, ${one.truth ? "truth after round" : "round"} ${one.round}`;
const formatted = (value) => {
  if (value === null) return "–";
  if (value === 0) return "0";
  return Math.abs(value) < 0.001 ? value.toExponential(1) : String(Number(value.toFixed(3)));
};

// Columns of values for a colour: [heading, numbers or nulls, one per turn]. The chosen arm's column
// is first.
function columns(one, colour, arm) {
  if (colour === "truth") return one.truth ? [["truth", one.truth]] : [];
  const values = one[colour];
  if (values[""]) return [[NAMES[colour], values[""]]];
  const arms = Object.keys(labels).filter((name) => values[name] && known(values[name]).length);
  arms.sort((a, b) => (b === arm) - (a === arm));
  const series = arms.map((name) => [labels[name], values[name]]);
  return one.truth && colour === "credit" ? [["truth", one.truth], ...series] : series;
}

function largest(values) {
  const sizes = known(values).map(Math.abs).sort((a, b) => a - b);
  const last = sizes.length - 1;
  return sizes.length ? sizes[Math.ceil(FULL * last)] || sizes[last] : 0;
}

// [sign, strength from 0 to 1] of each value of a column.
function tints(values) {
  const full = largest(values);
  return values.map((value) => [value < 0 ? "down" : "up", full ? Math.min(1, Math.abs(value ?? 0) / full) : 0]);
}

// How much arms disagree on the turns that mattered. Credit is centred over the trajectory and scaled by each
// arm's largest absolute value. `size` is the largest range of these values over arms at any turn, and `turn`
// is that turn; it is -1 with a single arm or if credit is constant.
function disagreement(one) {
  const scaled = Object.values(one.credit).filter((values) => known(values).length).map((values) => {
    const mean = known(values).reduce((sum, value) => sum + value, 0) / known(values).length;
    const less = values.map((value) => (value === null ? 0 : value - mean));
    const top = Math.max(...less.map(Math.abs));
    return less.map((value) => (top > 1e-9 ? value / top : 0));
  });
  if (scaled.length < 2) return { size: 0, turn: -1 };
  const spread = (_, turn) => Math.max(...scaled.map((each) => each[turn])) - Math.min(...scaled.map((each) => each[turn]));
  const spreads = one.turns.map(spread);
  const size = Math.max(...spreads);
  return { size, turn: size > 1e-9 ? spreads.indexOf(size) : -1 };
}

trajectories.forEach((one, index) => {
  one.index = index;
  one.words = [one.task, one.goal, ...one.turns.map((turn) => turn.action)].join("\n").toLowerCase();
  one.disagreement = disagreement(one);
  one.measured = one.truth ? "measured" : "not measured";
});

function fill(name, values, text = (value) => value) {
  const select = form.elements[name];
  select.append(new Option("all", ""), ...values.map((value) => new Option(text(value), value)));
  select.parentElement.hidden = values.length < 2;
}

const all = (key) => [...new Set(trajectories.map((one) => one[key]))];
const present = new Set(trajectories.flatMap((one) => Object.keys(one.credit)));
fill("arm", Object.keys(labels).filter((arm) => present.has(arm)), (arm) => labels[arm]);
fill("seed", all("seed").sort((a, b) => a - b));
fill("round", all("round").sort((a, b) => a - b));
fill("type", all("type").sort());
fill("outcome", all("outcome").sort());
fill("truth", all("measured").sort());
if (!trajectories.some((one) => one.truth)) {
  [...form.elements.colour.options].find((option) => option.value === "truth").remove();
}

const items = trajectories.map((one) => {
  const item = element("li");
  const button = element("button");
  button.type = "button";
  const arms = Object.keys(one.credit);
  const who = arms.length > 3 ? `${arms.length} arms` : arms.map((arm) => labels[arm] ?? arm).join(", ");
  const what = `${mark(one)} ${one.outcome}, return ${formatted(one.return)}, ${one.turns.length} turns`;
  const where = `${who}; ${when(one)}`;
  button.append(element("span", one.goal || one.task, "goal"), element("small", what), element("small", where));
  const strip = element("span", undefined, "strip");
  strip.ariaHidden = "true";
  button.append(strip);
  button.addEventListener("click", () => choose(one.index, true));
  item.append(button);
  return { item, button, strip };
});

// Colour a trajectory's strip, one part per turn, by the values of the chosen arm or of the first arm with
// nonzero values.
function paint(one) {
  const series = columns(one, form.elements.colour.value, form.elements.arm.value);
  const [, values] = series.find(([, each]) => each.some(Boolean)) ?? [null, []];
  const stops = tints(values).map(([sign, strength], turn) => {
    const colour = `rgb(var(--${sign}) / ${strength.toFixed(2)})`;
    return `${colour} ${(100 * turn) / values.length}% ${(100 * (turn + 1)) / values.length}%`;
  });
  items[one.index].strip.style.backgroundImage = stops.length ? `linear-gradient(to right, ${stops.join(", ")})` : "none";
}

function passes(one, filters) {
  return (
    (!filters.arm || one.credit[filters.arm] !== undefined) &&
    (!filters.seed || String(one.seed) === filters.seed) &&
    (!filters.round || String(one.round) === filters.round) &&
    (!filters.type || one.type === filters.type) &&
    (!filters.outcome || one.outcome === filters.outcome) &&
    (!filters.truth || one.measured === filters.truth) &&
    (!filters.text || one.words.includes(filters.text.toLowerCase()))
  );
}

const ORDERS = {
  "": (a, b) => a.index - b.index,
  disagree: (a, b) => b.disagreement.size - a.disagreement.size || a.index - b.index,
  long: (a, b) => b.turns.length - a.turns.length || a.index - b.index,
};
let chosen = -1;
let matching = [];

function filter(event) {
  const filters = Object.fromEntries(new FormData(form));
  matching = trajectories.filter((one) => passes(one, filters)).sort(ORDERS[filters.order]);
  list.replaceChildren();
  extend(LISTED);
  count.textContent = `${matching.length} of ${trajectories.length} trajectories`;
  // After a change of order, show the first trajectory.
  const stays = event?.target.name !== "order" && matching.some((one) => one.index === chosen);
  choose(stays ? chosen : (matching[0]?.index ?? -1), false);
}

// List the first `length` of the matching trajectories.
function extend(length) {
  const more = matching.slice(list.children.length, length);
  more.forEach(paint);
  list.append(...more.map((one) => items[one.index].item));
}

function choose(index, byHand) {
  items[chosen]?.button.removeAttribute("aria-current");
  if (index !== chosen) detail.scrollTop = 0;
  chosen = index;
  items[chosen]?.button.setAttribute("aria-current", "true");
  show();
  if (!byHand) return;
  history.replaceState(null, "", `#${index}`);
  if (narrow.matches) detail.scrollIntoView();
}

function legend(colour, series) {
  if (!series.length) return element("p", `There is no ${NAMES[colour]} for this trajectory.`, "muted");
  const made = element("p", undefined, "muted legend");
  const keys = colour === "logprob" ? [["down", "stronger colour: less likely reply"]] : [["up", "above zero"], ["down", "below zero"]];
  for (const [sign, text] of keys) made.append(element("span", undefined, `key ${sign}`), element("span", text));
  if (series.length > 1) made.append(element("span", "each column is scaled by its largest value"));
  return made;
}

function observation(text) {
  if (text.length <= FOLDED) return element("span", text, "seen");
  const folded = element("details", undefined, "seen");
  const start = text.lastIndexOf(" ", FOLDED / 2) + 1 || FOLDED / 2;
  folded.append(element("summary", text.slice(0, start)), text.slice(start));
  return folded;
}

// The cell of a turn: observation, action and outcome. `disputed` marks the turn on which arms disagree most
// with a text, so that the mark is visible without colours.
function turnCell(turn, number, disputed) {
  const cell = element("th");
  cell.scope = "row";
  cell.append(observation(turn.observation), element("span", `${number + 1}. ${turn.action}`, "action"));
  if (disputed) cell.append(element("span", "arms disagree most here", "disputed"));
  if (!turn.admissible) cell.append(element("span", "inadmissible", "bad"));
  const paid = ["reward", "progress"].filter((name) => turn[name]).map((name) => `${name} ${formatted(turn[name])}`);
  if (paid.length) cell.append(element("span", paid.join(", "), "muted paid"));
  return cell;
}

function turnTable(one, series) {
  const table = element("table");
  const head = table.createTHead().insertRow();
  for (const title of ["Turn", ...series.map(([name]) => name)]) {
    const cell = element("th", title);
    cell.scope = "col";
    head.append(cell);
  }
  const body = table.createTBody();
  const coloured = series.map(([, values]) => tints(values));
  one.turns.forEach((turn, number) => {
    const row = body.insertRow();
    const disputed = number === one.disagreement.turn;
    if (disputed) row.id = "disputed";
    row.append(turnCell(turn, number, disputed));
    series.forEach(([name, values], column) => {
      const [sign, strength] = coloured[column][number];
      const cell = element("td", formatted(values[number]), "value");
      cell.dataset.label = name;
      cell.style.setProperty("--tint", `var(--${sign})`);
      cell.style.setProperty("--shade", strength.toFixed(2));
      row.append(cell);
    });
  });
  return table;
}

function step(by) {
  const place = matching.findIndex((one) => one.index === chosen) + by;
  if (!matching[place]) return;
  extend(place + LISTED);
  items[matching[place].index].item.scrollIntoView({ block: "nearest" });
  choose(matching[place].index, true);
}

// A paragraph of buttons, given as [text, click handler, class].
function buttons(all) {
  const made = element("p", undefined, "steps");
  for (const [text, act, look] of all) {
    const button = element("button", text, look);
    button.type = "button";
    button.addEventListener("click", act);
    made.append(button);
  }
  return made;
}

function steps() {
  return buttons([["List", () => list.scrollIntoView(), "list"], ["Previous (k)", () => step(-1)], ["Next (j)", () => step(1)]]);
}

// A button that scrolls to the turn on which arms disagree most; an empty list if no turn is disputed.
function leads(one) {
  const { turn } = one.disagreement;
  const go = () => {
    const row = document.getElementById("disputed");
    row.tabIndex = -1;
    row.scrollIntoView({ block: "center" });
    row.focus({ preventScroll: true });
  };
  return turn < 0 ? [] : [buttons([[`Arms disagree most about turn ${turn + 1}`, go]])];
}

function show() {
  const one = trajectories[chosen];
  if (!one) return detail.replaceChildren(element("p", "No trajectory matches these filters."));
  const colour = form.elements.colour.value;
  const series = columns(one, colour, form.elements.arm.value);
  const facts = [
    `${mark(one)} ${one.outcome}, return ${formatted(one.return)}, ${one.turns.length} turns`,
    `${one.type}; task ${one.task}, rollout ${one.rollout}; ${when(one)}`,
  ];
  detail.replaceChildren(
    steps(),
    element("h2", one.goal || one.task),
    ...facts.map((fact) => element("p", fact, "muted")),
    ...leads(one),
    legend(colour, series),
    turnTable(one, series),
  );
  if (one.final) detail.append(observation(one.final));
}

form.addEventListener("input", filter);
form.addEventListener("reset", () => setTimeout(filter));
form.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  const typing = ["INPUT", "SELECT"].includes(event.target.tagName);
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "j") step(1);
  if (event.key === "k") step(-1);
});
list.addEventListener("scroll", () => {
  if (list.scrollTop + 3 * list.clientHeight > list.scrollHeight) extend(list.children.length + LISTED);
});
// On a phone the filters would hide the list.
const fold = () => (document.getElementById("fold").open = !narrow.matches);
narrow.addEventListener("change", fold);
fold();
const linked = Number(location.hash.slice(1) || -1);
if (trajectories[linked]) chosen = linked;
filter();
extend(matching.findIndex((one) => one.index === chosen) + LISTED);
items[chosen]?.item.scrollIntoView({ block: "nearest" });
