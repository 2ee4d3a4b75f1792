import { rounded } from './rounded.mjs'
import { comparisonOf, keyOf } from './variants.mjs'
import { signOf } from './verdict.mjs'

const HEADLINE = 'median'
const NOT_MEASURED = '–'

/** Columns of medians in addition to the headline, if a measurement has them. */
const COLUMNS = new Map([
  ['CPU µs', ({ cpuMicroseconds }, { headline }) => (headline === 'answersPerSecond' ? cpuMicroseconds : undefined)],
  ['main thread µs', ({ mainThreadMicroseconds }) => mainThreadMicroseconds],
  ['helper threads µs', ({ helperThreadsMicroseconds }) => helperThreadsMicroseconds],
  ['database µs', ({ serverMicroseconds }) => serverMicroseconds],
  [
    'per second',
    ({ answersPerSecond }, { headline }) => (headline === 'answersPerSecond' ? undefined : answersPerSecond),
  ],
  ['p50 ms', ({ p50Ms }) => p50Ms],
  ['p99 ms', ({ p99Ms }) => p99Ms],
  ['first byte ms', ({ firstByteMs }) => firstByteMs],
  ['least share %', ({ leastShare }) => leastShare && leastShare * 100],
])

/**
 * Returns the table of a suite as strings, with one row for each proxy of each scenario, and the numbered footnotes of its rows.
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
  return { rows: withoutEmptyColumns(rows), footnotes }
}

function withoutEmptyColumns(rows) {
  const columns = Object.keys(rows[0]).filter((column) => rows.some((row) => row[column] !== ''))
  return rows.map((row) => Object.fromEntries(columns.map((column) => [column, row[column]])))
}

function rowOf(suite, scenario, result, footnote) {
  const references = suite.referencesOf(scenario)
  const { medians, reason } = result
  const isMeasured = reason === undefined
  return {
    proxy: result.title,
    [HEADLINE]: headlineText(scenario, result, footnote),
    ...Object.fromEntries(
      references.map((reference) => [reference.column, comparisonText(scenario, reference, result)]),
    ),
    ...Object.fromEntries(
      [...COLUMNS].map(([column, medianOf]) => [column, isMeasured ? text(medianOf(medians, scenario)) : '']),
    ),
    target: targetText(suite, scenario, result),
  }
}

/**
 * Returns a table of several versions of Node: one row for each proxy of each scenario, with its headline, its comparisons and its target
 * on each. `nodes` are versions.
 */
function sideBySide(suite, outcomes, nodes) {
  const footnotes = []
  const footnote = (reason) => numberOf(footnotes, reason)
  const rows = outcomes.flatMap(({ scenario, results }) => {
    const [first = [], ...others] = nodes.map((node) => results.filter((result) => result.node === node))
    return first.map((result, index) => {
      const onEach = [result, ...others.map((some) => some[index])]
      return {
        scenario: index === 0 ? scenario.title : '',
        proxy: result.title,
        ...Object.assign({}, ...onEach.map((one) => nodeColumns(suite, scenario, one, footnote))),
      }
    })
  })
  return { rows: withoutEmptyColumns(rows), footnotes }
}

function nodeColumns(suite, scenario, result, footnote) {
  const { node } = result
  const references = suite.referencesOf(scenario)
  return {
    [`Node ${node}`]: headlineText(scenario, result, footnote),
    ...Object.fromEntries(
      references.map((reference) => [`${node}: ${reference.column}`, comparisonText(scenario, reference, result)]),
    ),
    [`${node}: target`]: targetText(suite, scenario, result),
  }
}

function headlineText({ headline, unit }, { title, medians, reason }, footnote) {
  if (reason === undefined) return `${rounded(medians[headline])} ${unit}`
  return `${NOT_MEASURED} [${footnote(`${title}: ${reason}`)}]`
}

/** A build of another revision serves only for comparison, so its targets are not checked again. */
function targetText(suite, scenario, result) {
  const isJudged = result.reason === undefined && result.build === undefined
  return isJudged ? (suite.verdictOf?.(scenario, result) ?? '') : ''
}

const text = (value) => (value === undefined ? '' : rounded(value))

function comparisonText(scenario, reference, { comparisons }) {
  const compared = comparisons?.[keyOf(reference)]
  if (compared === undefined) return ''
  const { median, least, most, batches } = compared
  const comparison = comparisonOf(scenario, reference)
  const each = reference.isPaired && batches.length > 1 ? `; batches ${batches.map(fine).join(' ')}` : ''
  if (comparison !== 'difference') {
    const show = reference.isPaired ? fine : rounded
    return `${show(median)} ${signOf({ ...scenario, comparison })} (${show(least)}–${show(most)})${each}`
  }
  const direction = median < 0 ? 'less' : 'more'
  return `${rounded(Math.abs(median))} ms ${direction} (${signed(least)} to ${signed(most)})${each}`
}

/** A step may change a value by a percent or less. */
const fine = (value) => value.toFixed(3)

const signed = (value) => `${value < 0 ? '−' : '+'}${rounded(Math.abs(value))}`

/** Returns the number of a footnote; equal footnotes share a number. */
function numberOf(footnotes, note) {
  if (!footnotes.includes(note)) footnotes.push(note)
  return footnotes.indexOf(note) + 1
}

/**
 * The report of a suite in Markdown: a table, or, for several versions of Node, one table that compares them and one for
 * each.
 */
export function reportOf(suite, outcomes, nodes) {
  if (nodes.length < 2) return markdownOf(tableOf(suite, outcomes))
  const each = nodes.map((node) => {
    const onNode = outcomes.map(({ scenario, results }) => ({
      scenario,
      results: results.filter((result) => result.node === node),
    }))
    return `### Node ${node}\n\n${markdownOf(tableOf(suite, onNode))}`
  })
  return [markdownOf(sideBySide(suite, outcomes, nodes)), ...each].join('\n\n')
}

/** A table and its footnotes in Markdown. */
function markdownOf({ rows, footnotes }) {
  const notes = footnotes.map((note, index) => `[${index + 1}] ${note}`)
  return [markdownTable(rows), ...notes].join('\n\n')
}

/** A Markdown table, its columns aligned so that it reads in a terminal too. */
function markdownTable(rows) {
  const columns = Object.keys(rows[0])
  const widths = columns.map((column) => Math.max(column.length, ...rows.map((row) => row[column].length)))
  const line = (cells) => `| ${cells.map((cell, index) => cell.padEnd(widths[index])).join(' | ')} |`
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`
  return [line(columns), rule, ...rows.map((row) => line(columns.map((column) => row[column])))].join('\n')
}
