// Sorting, traces in a dialog, arrow keys between numbers, and the theme kept. Without any of it the
// page reads the same: links lead to traces, and the theme is a matter of style alone.
"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  document.documentElement.classList.add("script");

  // Theme. A file opened from disk may have no storage; then the choice lasts as long as the page.
  const kept = (use) => { try { return use(window.localStorage); } catch { return null; } };
  const chosen = document.getElementById(kept((s) => s.getItem("theme")) || "");
  if (chosen && chosen.name === "theme") chosen.checked = true;
  for (const radio of all("input[name=theme]")) {
    radio.addEventListener("change", () => kept((s) => s.setItem("theme", radio.id)));
  }

  // Sorting: up, down, as it was. Cells without a value stay last either way.
  const announce = document.getElementById("announce");
  const words = new Intl.Collator("en", { numeric: true });
  const text = (row, at) => row.cells[at].textContent.trim();
  const compare = (one, two, numeric) =>
    numeric ? Number(one) - Number(two) : words.compare(one, two);
  const NEXT = { none: "ascending", ascending: "descending", descending: "none" };

  function sort(table, at, rows) {
    const heads = all("thead th", table);
    const way = NEXT[heads[at].getAttribute("aria-sort") || "none"];
    heads.forEach((head, i) => head.setAttribute("aria-sort", i === at ? way : "none"));
    const numeric = heads[at].classList.contains("num");
    const sign = way === "descending" ? -1 : 1;
    const sorted = way === "none" ? rows : [...rows].sort((a, b) => {
      const [one, two] = [text(a, at), text(b, at)];
      const missing = (one === "-") - (two === "-");
      return missing || sign * compare(one, two, numeric);
    });
    table.tBodies[0].append(...sorted);
    announce.textContent = way === "none"
      ? "as in the records" : `sorted by ${heads[at].textContent.trim()}, ${way}`;
  }

  // Numbers: one stop of the Tab key a table, arrow keys inside. Rows and columns are those shown.
  function move(table, link, key) {
    const cell = link.closest("td,th");
    const rows = [...table.tBodies[0].rows];
    const [down, across] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[key];
    let row = rows.indexOf(cell.parentNode), column = cell.cellIndex;
    for (;;) {
      row += down; column += across;
      const next = rows[row] && rows[row].cells[column];
      if (!next) return;
      const found = next.querySelector("a.n");
      if (found) return enter(table, found);
    }
  }

  function enter(table, link) {
    for (const one of all("tbody a.n", table)) one.tabIndex = -1;
    link.tabIndex = 0;
    link.focus();
  }

  for (const table of all("table.data")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length > 1) {
      all("thead th", table).forEach((head, at) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...head.childNodes);
        button.addEventListener("click", () => sort(table, at, rows));
        head.append(button);
        head.setAttribute("aria-sort", "none");
      });
    }
    all("tbody a.n", table).forEach((link, i) => { link.tabIndex = i ? -1 : 0; });
    table.addEventListener("keydown", (event) => {
      const link = event.target.closest("a.n");
      if (!link || !event.key.startsWith("Arrow") || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      move(table, link, event.key);
    });
  }

  // Traces: what was clicked, the claim, its records, and the digests of their runs, in one dialog.
  const dialog = document.getElementById("trace");
  const body = document.getElementById("trace-body");
  const copy = (element) => {
    const made = element.cloneNode(true);
    for (const one of [made, ...all("[id]", made)]) one.removeAttribute("id");
    for (const head of all("h4", made)) { // below the dialog's own head
      const moved = document.createElement("h3");
      moved.append(...head.childNodes);
      head.replaceWith(moved);
    }
    return made;
  };

  function context(link) {
    const cell = link.closest("td,th");
    const table = link.closest("table.data");
    if (!cell || !table) return null;
    const shown = document.createElement("p");
    const head = table.tHead.rows[0].cells[cell.cellIndex];
    const value = document.createElement("b");
    value.className = "value";
    value.textContent = link.textContent;
    const words = [head.textContent.trim()];
    for (const [i, other] of [...cell.parentNode.cells].entries()) {
      const named = table.tHead.rows[0].cells[i];
      const said = other.textContent.trim();
      if (i === cell.cellIndex || named.classList.contains("num") || said === "-") continue;
      words.push(`${named.textContent.trim()} ${said}`);
      if (words.length > 3) break;
    }
    shown.append(value, ` ${words.join(", ")}`);
    const article = link.closest("article");
    const made = article && article.querySelector(".made");
    return made ? [shown, copy(made)] : [shown];
  }

  function open(link, target) {
    const parts = [];
    if (!target.matches(".claim")) parts.push(...(context(link) || []));
    else parts.push(copy(target));
    const source = target.dataset.source ? document.getElementById(target.dataset.source) : target;
    if (source) {
      parts.push(copy(source));
      for (const id of (source.dataset.runs || "").split(" ").filter(Boolean)) {
        const run = document.getElementById(id);
        parts.push(...all("h3, .stratum-of-run, .digests", run).map(copy));
      }
    }
    body.replaceChildren(...parts);
    body.scrollTop = 0;
    if (!dialog.open) dialog.showModal();
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      const target = document.getElementById(link.hash.slice(1));
      if (target && target.matches(".trace")) {
        event.preventDefault();
        open(link, target);
      } else if (dialog.open) {
        dialog.close();
      }
    }
    if (event.target === dialog) dialog.close(); // beside it
  });

  // Browsers that do not open a folded finding for its anchor: of 2024 and before.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const fold = target && target.closest(".finding details");
    if (fold && !fold.open) { fold.open = true; target.scrollIntoView(); }
  };
  window.addEventListener("hashchange", reveal);
  reveal();

  // Paper has no clicks: what a verdict was decided by, and each finding, is opened for print, and closed again.
  let unfolded = [];
  window.addEventListener("beforeprint", () => {
    unfolded = all("details.decided:not([open]), .finding details:not([open])");
    for (const one of unfolded) one.open = true;
  });
  window.addEventListener("afterprint", () => { for (const one of unfolded) one.open = false; });
})();
