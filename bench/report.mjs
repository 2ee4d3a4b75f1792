import { rounded } from './rounded.mjs'
import { signOf } from './verdict.mjs'

const HEADLINE = 'median'
const NOT_MEASURED = '–'

/** Columns of medians beside the headline, where a measurement has them. */
const COLUMNS = new Map([
  ['per second', ({ answersPerSecond }) => answersPerSecond],
  ['p50 ms', ({ p50Ms }) => p50Ms],
  ['p99 ms', ({ p99Ms }) => p99Ms],
  ['first byte ms', ({ firstByteMs }) => firstByteMs],
  ['least share %', ({ leastShare }) => leastShare && leastShare * 100],
])

/**
 * The table of a suite: one row for each proxy of each scenario, as texts, and the footnotes that rows refer to by number.
 * A column that is empty in all rows is left out.
 */
export function tableOf(suite, outcomes) {
  const footnotes = []
  const rows = outcomes.flatMap((outcome) =>
    outcome.results.map((result, index) => ({
      scenario: index === 0 ? outcome.scenario.title : '',
      ...rowOf(suite, outcome.scenario, result, (reason) => numberOf(footnotes, reason)),
    })),
  )
  const columns = Object.keys(rows[0]).filter((column) => rows.some((row) => row[column] !== ''))
  return { rows: rows.map((row) => Object.fromEntries(columns.map((column) => [column, row[column]]))), footnotes }
}

function rowOf(suite, scenario, result, footnote) {
  const references = suite.referencesOf(scenario)
  const { medians, comparisons, reason } = result
  const isMeasured = reason === undefined
  const compared = ({ name, column }) => [
    column,
    isMeasured && (result.proxy !== name || scenario.comparison === 'absolute')
      ? comparisonText(scenario, comparisons[name])
      : '',
  ]
  return {
    proxy: result.title,
    [HEADLINE]: isMeasured
      ? `${rounded(medians[scenario.headline])} ${scenario.unit}`
      : `${NOT_MEASURED} [${footnote(`${result.title}: ${reason}`)}]`,
    ...Object.fromEntries(references.map(compared)),
    ...Object.fromEntries(
      [...COLUMNS].map(([column, medianOf]) => [column, isMeasured ? text(medianOf(medians)) : '']),
    ),
    target: isMeasured ? (suite.verdictOf?.(scenario, result) ?? '') : '',
  }
}

const text = (value) => (value === undefined ? '' : rounded(value))

function comparisonText(scenario, { median, least, most }) {
  if (scenario.comparison !== 'difference')
    return `${rounded(median)} ${signOf(scenario)} (${rounded(least)}–${rounded(most)})`
  const direction = median < 0 ? 'less' : 'more'
  return `${rounded(Math.abs(median))} ms ${direction} (${signed(least)} to ${signed(most)})`
}

const signed = (value) => `${value < 0 ? '−' : '+'}${rounded(Math.abs(value))}`

/** The number of a footnote; equal ones are one. */
function numberOf(footnotes, note) {
  if (!footnotes.includes(note)) footnotes.push(note)
  return footnotes.indexOf(note) + 1
}

/** A table and its footnotes in Markdown. */
export function markdownOf({ rows, footnotes }) {
  const notes = footnotes.map((note, index) => `[${index + 1}] ${note}`)
  return [markdownTable(rows), ...notes].join('\n\n')
}

/** A Markdown table, its columns aligned so that it reads in a terminal too. */
export function markdownTable(rows) {
  const columns = Object.keys(rows[0])
  const widths = columns.map((column) => Math.max(column.length, ...rows.map((row) => row[column].length)))
  const line = (cells) => `| ${cells.map((cell, index) => cell.padEnd(widths[index])).join(' | ')} |`
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`
  return [line(columns), rule, ...rows.map((row) => line(columns.map((column) => row[column])))].join('\n')
}
