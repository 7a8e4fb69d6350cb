
const table = document.getElementById("runs");
const heads = [...table.tHead.rows[0].cells];
heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
  const down = head.getAttribute("aria-sort") === "ascending";
  heads.forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = (row) => row.cells[column].dataset.sort;
  const order = (a, b) => {
    const [x, y] = [key(a), key(b)];
    const numbers = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
    return numbers ? x - y : x.localeCompare(y);
  };
  const rows = [...table.tBodies[0].rows].sort(order);
  table.tBodies[0].append(...(down ? rows.reverse() : rows));
}));
