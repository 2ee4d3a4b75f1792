/** Formats a number for tables, with three significant digits: `1,454`, `98.1`, `2.53`. */
export function rounded(value) {
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en-US')
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2)
}
