// The box above the table: words and conditions, all of which a row has to meet.

const CONDITION = /^("[^"]*"|[^<>=!"]+)(<=|>=|!=|==?|<|>)(.*)$/;

const bare = (text) => text.replaceAll('"', "").toLowerCase();

/** A name or value as it has to be written. */
const named = (text) => (/[\s<>=!]/.test(text) ? `"${text}"` : text);

/** Tests of a row, and names in conditions that are no column's. */
function asked(text, columns) {
  const near = text.replace(/("[^"]*"?)|\s*(<=|>=|!=|==?|<|>)\s*/g, (_, quoted, operator) => quoted ?? operator);
  const tests = [], unknown = [];
  for (const token of near.match(/(?:"[^"]*"?|[^\s"])+/g) ?? []) {
    const [, name, operator, value] = CONDITION.exec(token) ?? [];
    if (!name) tests.push(word(bare(token), columns));
    else {
      const column = columns.find((one) => [one.name, `params.${one.name}`].some((own) => own.toLowerCase() === bare(name)));
      if (!column) unknown.push(name.replaceAll('"', ""));
      else if (value) tests.push(column.where(operator === "==" ? "=" : operator, bare(value)));
    }
  }
  return {tests, unknown};
}

/** A state by its name, else the text anywhere in the row. */
function word(wanted, columns) {
  const state = columns.find((one) => one.name === "state");
  if (state?.texts.some((text) => text.toLowerCase() === wanted)) return state.where("=", wanted);
  const found = columns.map((one) => one.passes((text) => text.toLowerCase().includes(wanted)));
  return (i) => found.some((passes) => passes(i));
}

const inert = (text) => (FORMULA.includes(text[0]) ? `'${text}` : text);
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** Rows as CSV; no text in it is a formula to a spreadsheet. */
function csv(columns, rows) {
  const lines = [columns.map((one) => quoted(inert(one.heading))).join(",")];
  for (const i of rows) lines.push(columns.map((one) => quoted(one.cell(i))).join(","));
  return `${lines.join("\r\n")}\r\n`;
}
