// What a small screen needs: a sign where something goes on to the right, formulas made smaller where that
// makes them whole, printed columns that stay columns, and a menu that closes behind the reader.

const LEAST = 0.72; // of its size: a formula is not made smaller than that, but scrolls

function fitted(formula) {
  const drawn = formula.querySelector("svg");
  if (!drawn || formula.dataset.fitted) return;
  const share = formula.clientWidth / formula.scrollWidth;
  if (!(share < 1)) return;
  formula.dataset.fitted = share;
  drawn.style.width = `${drawn.getBoundingClientRect().width * Math.max(LEAST, share)}px`;
  drawn.style.height = "auto";
}

function marked(box) {
  const wide = box.scrollWidth > box.clientWidth + 4;
  box.classList.toggle("goes-on", wide && box.scrollLeft + box.clientWidth < box.scrollWidth - 4);
  if (wide && box.localName === "figure" && !box.previousElementSibling?.matches(".goes-on-note")) {
    const note = document.createElement("p");
    note.className = "goes-on-note";
    note.textContent = "swipe for the rest \u2192";
    box.before(note);
  }
}

const COLUMNS = /\S {2,}\S.*\S {2,}\S/; // of a printed line: set apart at two places or more

/** Two printed lines in columns or more, one below the other, scroll together. */
function aligned(printed) {
  if (printed.querySelector(":not(:empty)")) return; // coloured: left as it is
  const parts = [];
  for (const line of printed.textContent.match(/[^\n]*\n|[^\n]+$/g) || []) {
    const last = parts.at(-1);
    const table = COLUMNS.test(line);
    if (last && last.table === table) last.lines.push(line);
    else parts.push({ table, lines: [line] });
  }
  const blocks = parts.map(({ table, lines }) => {
    const text = lines.join("");
    if (!table || lines.length < 2) return text;
    const block = document.createElement("span");
    block.className = "columns";
    block.textContent = text.replace(/\n$/, "");
    return block;
  });
  if (blocks.some((block, k) => block.className || block !== parts[k].lines.join(""))) printed.replaceChildren(...blocks);
}

const WIDE = ".bd-article :is(figure, table, .cell_input pre, .columns, mjx-container[display])";

function look() {
  if (innerWidth > 500) return;
  document.querySelectorAll(".bd-article mjx-container[display]").forEach(fitted);
  document.querySelectorAll(".bd-article .cell_output pre").forEach(aligned);
  const watch = new ResizeObserver((seen) => seen.forEach((one) => marked(one.target)));
  for (const box of document.querySelectorAll(WIDE)) {
    watch.observe(box);
    box.addEventListener("scroll", () => marked(box), { passive: true });
  }
}

window.addEventListener("load", () => (window.MathJax?.startup?.promise || Promise.resolve()).then(look));
document.addEventListener("click", (event) => {
  event.target.closest?.("dialog[open] a[href]")?.closest("dialog").close();
});
