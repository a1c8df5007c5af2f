"use strict";
const { labels, trajectories } = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("filters");
const list = document.getElementById("list");
const detail = document.getElementById("detail");
const count = document.getElementById("count");
// Beyond this share of the largest value a colour is full, so that one outlier does not pale the rest.
const FULL = 0.9;

function element(name, text, look) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (look) made.className = look;
  return made;
}

function armsOf(one) {
  return Object.keys(one.credit);
}

// The columns of values that a colour shows: [heading, numbers or nulls, one per turn].
function columns(one, colour) {
  if (colour === "logprob") return [["log-probability", one.logprob]];
  const of = colour === "truth" ? one.credit : one[colour];
  const found = Object.keys(labels).filter((arm) => of[arm]).map((arm) => [labels[arm], of[arm]]);
  return one.truth ? [["truth", one.truth], ...found] : found;
}

function largest(values) {
  const sizes = values.filter((value) => value !== null).map(Math.abs).sort((a, b) => a - b);
  return sizes.length ? sizes[Math.ceil(FULL * (sizes.length - 1))] || sizes[sizes.length - 1] : 0;
}

// How much arms disagree about a trajectory: the largest spread, over turns, of credit that is scaled
// to each arm's largest value.
function disagreement(one) {
  const scaled = Object.values(one.credit).map((values) => {
    const top = Math.max(...values.map((value) => Math.abs(value ?? 0)));
    return values.map((value) => (top ? (value ?? 0) / top : 0));
  });
  if (scaled.length < 2) return 0;
  const spread = (turn) => Math.max(...scaled.map((each) => each[turn])) - Math.min(...scaled.map((each) => each[turn]));
  return Math.max(...one.turns.map((_, turn) => spread(turn)));
}

trajectories.forEach((one, index) => {
  one.index = index;
  one.words = [one.goal, ...one.turns.map((turn) => turn.action)].join("\n").toLowerCase();
  one.disagreement = disagreement(one);
});

function fill(name, values, shown = (value) => value) {
  const select = form.elements[name];
  select.append(new Option("all", ""));
  for (const value of values) select.append(new Option(shown(value), value));
}

const all = (key) => [...new Set(trajectories.map((one) => one[key]))];
const present = new Set(trajectories.flatMap(armsOf));
fill("arm", Object.keys(labels).filter((arm) => present.has(arm)), (arm) => labels[arm]);
fill("seed", all("seed").sort((a, b) => a - b));
fill("round", all("round").sort((a, b) => a - b));
fill("type", all("type").sort());
fill("outcome", all("outcome").sort());
if (!trajectories.some((one) => one.truth)) {
  [...form.elements.colour.options].find((option) => option.value === "truth").remove();
}

const buttons = trajectories.map((one) => {
  const item = element("li");
  const button = element("button");
  button.type = "button";
  button.append(element("span", one.goal || one.task));
  const arms = armsOf(one);
  const who = arms.length > 3 ? `${arms.length} arms` : arms.map((arm) => labels[arm] || arm).join(", ");
  button.append(element("small", `${one.outcome}, return ${one.return}, ${one.turns.length} turns; ${who}; seed ${one.seed}, round ${one.round}`));
  button.addEventListener("click", () => choose(one.index, true));
  item.append(button);
  return item;
});

function wanted(one, given) {
  return (
    (!given.arm || one.credit[given.arm] !== undefined) &&
    (!given.seed || String(one.seed) === given.seed) &&
    (!given.round || String(one.round) === given.round) &&
    (!given.type || one.type === given.type) &&
    (!given.outcome || one.outcome === given.outcome) &&
    (!given.text || one.words.includes(given.text.toLowerCase()))
  );
}

const ORDERS = {
  "": (a, b) => a.index - b.index,
  disagree: (a, b) => b.disagreement - a.disagreement || a.index - b.index,
  long: (a, b) => b.turns.length - a.turns.length || a.index - b.index,
};
let chosen = 0;

function filter() {
  const given = Object.fromEntries(new FormData(form));
  const kept = trajectories.filter((one) => wanted(one, given)).sort(ORDERS[given.order]);
  list.replaceChildren(...kept.map((one) => buttons[one.index]));
  count.textContent = `${kept.length} of ${trajectories.length} trajectories`;
  if (!kept.some((one) => one.index === chosen) && kept.length) choose(kept[0].index, false);
  else show();
}

function choose(index, byHand) {
  const before = buttons[chosen]?.firstChild;
  if (before) before.removeAttribute("aria-current");
  chosen = index;
  buttons[index].firstChild.setAttribute("aria-current", "true");
  show();
  if (byHand) {
    history.replaceState(null, "", `#${index}`);
    if (matchMedia("(max-width: 46rem)").matches) detail.scrollIntoView();
  }
}

function show() {
  const one = trajectories[chosen];
  if (!one) return detail.replaceChildren(element("p", "No trajectory."));
  const colour = form.elements.colour.value;
  const shown = columns(one, colour);
  const table = element("table");
  const head = table.createTHead().insertRow();
  for (const title of ["Turn", ...shown.map(([name]) => name)]) {
    const cell = element("th", title);
    cell.scope = "col";
    head.append(cell);
  }
  const body = table.createTBody();
  const scales = shown.map(([, values]) => largest(values));
  one.turns.forEach((turn, number) => {
    const row = body.insertRow();
    const cell = element("th");
    cell.scope = "row";
    cell.append(element("span", turn.observation, "seen"), element("span", `${number + 1}. ${turn.action}`, "action"));
    if (!turn.admissible) cell.append(element("em", "inadmissible", "bad"));
    const paid = [];
    if (turn.reward) paid.push(`reward ${turn.reward}`);
    if (turn.progress) paid.push(`progress ${turn.progress}`);
    if (paid.length) cell.append(element("span", paid.join(", "), "muted"));
    row.append(cell);
    shown.forEach(([, values], column) => {
      const value = values[number];
      const made = element("td", value === null ? "–" : value.toFixed(3), "value");
      if (value !== null && scales[column]) {
        made.style.setProperty("--tint", value < 0 ? "var(--down)" : "var(--up)");
        made.style.setProperty("--shade", String(Math.min(1, Math.abs(value) / scales[column]) * 0.75));
      }
      row.append(made);
    });
  });
  const facts = `${one.type}, ${one.outcome}, return ${one.return}; task ${one.task}, rollout ${one.rollout}; seed ${one.seed}, round ${one.round}`;
  detail.replaceChildren(element("h2", one.goal || one.task), element("p", facts, "muted"), table);
  if (one.final) detail.append(element("p", one.final, "seen"));
}

form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  if (!["j", "k"].includes(event.key) || ["INPUT", "SELECT"].includes(event.target.tagName)) return;
  const items = [...list.children];
  const at = items.indexOf(buttons[chosen]) + (event.key === "j" ? 1 : -1);
  if (items[at]) {
    choose(buttons.indexOf(items[at]), true);
    items[at].scrollIntoView({ block: "nearest" });
  }
});
const linked = Number(location.hash.slice(1));
if (trajectories[linked]) chosen = linked;
filter();
if (trajectories.length) choose(chosen, false);
