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
    const answer = await fetch(form.action, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Sluice": "1" },
      body: JSON.stringify(said(form, submitter)),
    });
    const { message, next } = await answer.json();
    output.className = answer.ok ? "good" : "bad";
    output.textContent = message;
    if (answer.ok) {
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
