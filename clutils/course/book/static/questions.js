// The forms of clutils.course.book.questions: an answer is hashed, and what `check` says of it looked up.
// Answers and texts are hidden from a glance alone.

function hashed(text) { // FNV-1a of 32 bits
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value.toString(16);
}

function spelled(number, digits) { // as Python's spelled: 303.2 -> 3.03e2
  const [mantissa, exponent] = number.toExponential(digits - 1).split("e");
  return `${mantissa}e${Number(exponent)}`;
}

function given(form, digits) { // what the reader gave: as it is shown and as it is looked up; null: nothing yet
  if (!digits) {
    const words = [...form.querySelectorAll("select")].map((select) => select.value);
    return words.every(Boolean) ? { shown: words.join(", "), key: words.join("\n") } : null;
  }
  const shown = form.querySelector("input").value.trim();
  const number = Number(shown.replace(",", ".").replace("−", "-"));
  return shown && { shown, key: Number.isFinite(number) ? spelled(number, digits) : "" };
}

function say(output, text) { // `code` as code
  const parts = text.split("`").map((part, k) => {
    if (k % 2 === 0) return part;
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  });
  output.replaceChildren(...parts);
}

for (const form of document.querySelectorAll("form.question")) {
  const bytes = Uint8Array.from(atob(form.dataset.asked), (c) => c.charCodeAt(0));
  const asked = JSON.parse(new TextDecoder().decode(bytes)), output = form.querySelector("output");
  let hints = 0;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const answer = given(form, asked.digits);
    const known = answer && asked.keys[hashed(`${asked.name}\n${answer.key}`)];
    if (!answer) say(output, asked.nothing);
    else if (asked.digits && !answer.key) say(output, `${asked.name}: expected a number, got ${answer.shown}.`);
    else say(output, known === undefined ? asked.other.replace("…", answer.shown) : asked.said[known]);
    form.classList.toggle("right", output.textContent.startsWith("✓"));
  });
  form.querySelector("button[type=button]").addEventListener("click", () => {
    const index = Math.min(hints++, asked.hints.length - 1);
    say(output, `Hint ${index + 1} of ${asked.hints.length}: ${asked.hints[index]}`);
  });
}
