"use strict";
(() => {
  // Columns of numbers are sorted by data-v, which is empty where nothing is known.
  const keyOf = (row, place, isNumber) => {
    const cell = row.cells[place];
    if (!isNumber) return cell.textContent.trim();
    const value = cell.dataset.v;
    return value === "" || value === undefined ? null : Number(value);
  };

  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  const sortBy = (table, header, place) => {
    const isNumber = !header.classList.contains("text");
    const before = header.getAttribute("aria-sort");
    const first = isNumber ? "descending" : "ascending";
    const second = isNumber ? "ascending" : "descending";
    const order = before === first ? second : first;
    const sign = order === "ascending" ? 1 : -1;
    const rows = Array.from(table.tBodies[0].rows, (row) => [keyOf(row, place, isNumber), row]);
    rows.sort(([one], [other]) => {
      if (one === null || other === null) return (one === null) - (other === null);
      return sign * (isNumber ? one - other : collator.compare(one, other));
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", order);
  };

  for (const table of document.querySelectorAll("table")) {
    Array.from(table.tHead.rows[0].cells).forEach((header, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = header.textContent;
      header.replaceChildren(button);
      button.addEventListener("click", () => sortBy(table, header, place));
    });
  }

  for (const field of document.querySelectorAll("input[data-table]")) {
    const rows = Array.from(document.getElementById(field.dataset.table).tBodies[0].rows);
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const status = field.parentElement.querySelector("[role=status]");
    field.parentElement.hidden = false;
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      let shown = 0;
      rows.forEach((row, place) => {
        row.hidden = !texts[place].includes(wanted);
        shown += row.hidden ? 0 : 1;
      });
      status.textContent = wanted ? `${shown} of ${rows.length} rows` : "";
    });
  }

  for (const button of document.querySelectorAll("button[data-download]")) {
    button.parentElement.hidden = false;
    button.addEventListener("click", () => {
      const content = JSON.parse(document.getElementById(button.dataset.download).textContent);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([content], { type: "text/csv;charset=utf-8" }));
      link.download = button.dataset.name;
      document.body.append(link);
      link.click();
      link.remove();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }
})();
