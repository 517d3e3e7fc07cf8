// What the pages do beyond showing: forms with `data-act` are sent, and what came of it is said in place.
"use strict";

const root = new URL(document.documentElement.dataset.root, location.href);

/** Return what a form says, as JSON has it: numbers, yes or no, lists of what is ticked, and texts; what is left empty is null. */
function said(form, submitter) {
  const values = {};
  for (const field of form.elements) {
    if (!field.name || field.disabled || field.tagName === "BUTTON") continue;
    if (field.type === "checkbox" && field.hasAttribute("value")) {
      values[field.name] ??= [];
      if (field.checked) values[field.name].push(field.value);
    } else if (field.type === "checkbox") values[field.name] = field.checked;
    else if (field.type === "radio") values[field.name] = field.checked ? field.value : values[field.name] ?? null;
    else if (field.type === "number") values[field.name] = field.value === "" ? null : field.valueAsNumber;
    else values[field.name] = field.value === "" ? null : field.value;
  }
  if (submitter?.name) values[submitter.name] = submitter.value;
  return values;
}

/** Send a form, and say in its `output` what came of it. */
async function act(form, submitter) {
  const output = form.querySelector("output");
  const buttons = form.querySelectorAll("button");
  output.className = "";
  output.textContent = "…";
  for (const button of buttons) button.disabled = true;
  try {
    const answer = await fetch(submitter?.hasAttribute("formaction") ? submitter.formAction : form.action, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Sluice": "1" },
      body: JSON.stringify(said(form, submitter)),
    });
    const { message, next } = await answer.json();
    output.className = answer.ok ? "good" : "bad";
    output.textContent = message;
    if (answer.ok) {
      refresh().catch(() => {});
      const link = document.createElement("a");
      link.href = next == null ? location.href : new URL(next, root);
      link.textContent = next == null ? "Show the page as it is now" : "See what comes of it";
      output.append(" ", link);
    }
  } catch {
    output.className = "bad";
    output.textContent = "The server did not answer; whether it was done is not known. Load the page again to see.";
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-act]")) return;
  event.preventDefault();
  act(event.target, event.submitter);
});

// A button of a shard opens the form for shards, with its name filled in.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-fill]");
  const field = button && document.querySelector("form[data-act] input[name=shard]");
  if (!field) return;
  field.value = button.dataset.fill;
  field.closest("details").open = true;
  field.form.elements.reason.focus();
});

/** Fetch the page again, and put its parts that grow stale in the place of those that are shown, but for one that is in use. */
async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const fresh of page.querySelectorAll("[data-fresh]")) {
    const shown = document.getElementById(fresh.id);
    if (shown && !shown.contains(document.activeElement)) shown.replaceWith(document.importNode(fresh, true));
  }
}

/** Return a function that lets another one run: soon, but no more than once in so many milliseconds. */
function nowAndThen(milliseconds, work) {
  let waits = null;
  let last = 0;
  return () => {
    waits ??= setTimeout(() => {
      waits = null;
      last = Date.now();
      work().catch(() => {});
    }, Math.max(200, last + milliseconds - Date.now()));
  };
}

/** Return a time in its largest unit, as the server has it. */
function lasting(seconds) {
  for (const [unit, size] of [["h", 3600], ["m", 60]]) if (seconds >= size) return `${Math.floor(seconds / size)}${unit}`;
  return `${Math.floor(seconds)}s`;
}

const number = new Intl.NumberFormat("en");
const EVENTS_SHOWN = 30;
const RATE_OVER = 60_000;

/** Follow a run: paint what happens to its shards, list its events, and say how far it has come. */
class RunView {
  constructor(live) {
    this.address = new URL(live.dataset.events, location.href);
    this.after = Number(live.dataset.after);
    this.samples = [];
    this.announced = "";
    this.refreshed = nowAndThen(3000, refresh);
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    this.open();
  }

  open() {
    if (this.source || this.rests || document.hidden) return;
    this.address.searchParams.set("after", this.after);
    this.source = new EventSource(this.address);
    this.source.onmessage = (message) => this.happened(JSON.parse(message.data), Number(message.lastEventId));
    this.source.addEventListener("standing", (message) => this.stands(JSON.parse(message.data)));
    this.source.addEventListener("rest", () => {
      this.rests = true;
      this.close();
      this.refreshed();
    });
    this.source.onopen = () => this.stale("");
    this.source.onerror = () => {
      if (this.source?.readyState !== EventSource.CLOSED) return; // it comes back by itself
      this.close();
      this.explain();
      setTimeout(() => this.open(), 15_000);
    };
  }

  /** Find out why nothing comes any more, and say so: old figures must not pass for new ones. */
  async explain() {
    const status = await fetch(location.href).then((answer) => answer.status, () => 0);
    const denied = status === 401 || status === 403;
    this.stale(denied ? "You are logged out, or may not see this run any more: log in, and load the page again."
      : "The server sends nothing new. It is asked again every 15 seconds.");
  }

  stale(why) {
    const place = document.getElementById("stale");
    place.hidden = !why;
    place.textContent = why && `${why} What stands here was so at ${new Date().toISOString().slice(11, 19)} UTC.`;
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  happened(event, seq) {
    if (seq <= this.after) return;
    this.after = seq;
    this.list(event);
    if (event.subject === "shard") this.paint(event.name, event.status);
    if (event.subject !== "shard" || event.event === "fail") this.refreshed();
  }

  paint(shard, status) {
    const square = document.querySelector(`.strip [data-shard="${CSS.escape(shard)}"]`);
    if (!square) return this.refreshed();
    square.className = status;
    square.title = `${shard}: ${status}`;
  }

  list(event) {
    const row = document.createElement("tr");
    const what = event.subject === "run" ? "run" : `${event.subject} ${event.name}`;
    const facts = Object.entries(event.facts).map(([name, fact]) => `${name} ${fact}`).join(", ");
    const at = `${event.at.slice(0, 19).replace("T", " ")} UTC`;
    for (const [text, kind, tag] of [[event.seq, "number"], [at, "moment"], [what, "long", "th"], [event.event, ""],
      [event.status, `status ${event.status}`], [facts, "long"]]) {
      const cell = document.createElement(tag ?? "td");
      if (tag) cell.scope = "row";
      cell.className = kind;
      cell.textContent = text;
      row.append(cell);
    }
    const list = document.getElementById("events");
    list.prepend(row);
    while (list.rows.length > EVENTS_SHOWN) list.lastElementChild.remove();
  }

  stands(run) {
    const now = Date.now();
    this.samples = [...this.samples.filter(([at]) => at > now - RATE_OVER), [now, run.records]];
    const [began, before] = this.samples[0];
    const rate = now - began >= 4000 ? Math.max(0, (run.records - before) * 1000 / (now - began)) : null;
    const left = rate && run.expected !== null ? (run.expected - run.records) / rate : null;
    this.figure("records", number.format(run.records));
    this.figure("pages", number.format(run.pages));
    if (run.expected !== null) this.figure("expected", number.format(run.expected));
    if (rate !== null || run.status !== "running") { // until it is known here, the page's own word counts
      const isAtWork = run.status === "running";
      this.figure("rate", isAtWork ? number.format(Math.round(rate)) : null);
      this.figure("left", isAtWork && left !== null ? lasting(left) : null);
    }
    const statuses = Object.entries(run.shards);
    for (const [status, shards] of statuses) {
      const tally = document.querySelector(`[data-tally="${status}"]`);
      if (tally) tally.textContent = number.format(shards);
      else this.refreshed();
    }
    for (const tally of document.querySelectorAll("[data-tally]")) if (!(tally.dataset.tally in run.shards)) tally.textContent = "0";
    const strip = document.querySelector(".strip");
    const told = statuses.map(([status, shards]) => `${number.format(shards)} ${status}`).join(", ");
    strip?.setAttribute("aria-label", `Shards: ${told}; the table below has them one by one`);
    this.announce(run, told);
  }

  /** Show a figure, with the words around it; null: nobody can tell. */
  figure(name, text) {
    const place = document.querySelector(`[data-figure="${name}"]`);
    if (!place) return;
    if (place.parentElement.id !== "standing") place.parentElement.hidden = text === null;
    if (text !== null && place.textContent !== text) place.textContent = text;
  }

  /** Let screen readers say what is new, and not each record. */
  announce(run, told) {
    const said = `The run is ${run.status}, at ${run.step}. Shards: ${told}.`;
    if (said === this.announced) return;
    this.announced = said;
    clearTimeout(this.saying);
    this.saying = setTimeout(() => (document.getElementById("said").textContent = said), 2000);
  }
}

const live = document.querySelector("[data-events]");
if (live) new RunView(live);
