import { FLOOR } from './proxies/proxies.mjs'

const SIGNS = { ratio: '×', difference: 'ms more' }

/** What stands behind a compared value; an absolute one has the unit of the headline, such as `kB` of `kB/stream`. */
const signOf = ({ comparison, unit }) => SIGNS[comparison] ?? unit.split('/')[0]

/** One row for each proxy of a scenario, as texts. */
export function rowsOf({ scenario, results }) {
  return results.map((result) => {
    const { medians } = result
    const isFloor = result.proxy === FLOOR.name
    return {
      scenario: isFloor ? scenario.title : '',
      proxy: result.title,
      [HEADLINE]: `${round(medians[scenario.headline])} ${scenario.unit}`,
      'against the floor': isFloor && scenario.comparison !== 'absolute' ? '' : comparisonText(scenario, result),
      'per second': medians.answersPerSecond === undefined ? '' : round(medians.answersPerSecond),
      'p50 ms': medians.p50Ms === undefined ? '' : round(medians.p50Ms),
      'p99 ms': medians.p99Ms === undefined ? '' : round(medians.p99Ms),
      'first byte ms': medians.firstByteMs === undefined ? '' : round(medians.firstByteMs),
      target: isFloor ? '' : verdict(scenario, result.comparison),
    }
  })
}

const HEADLINE = 'median'

function comparisonText(scenario, result) {
  const [least, most] = [Math.min(...result.compared), Math.max(...result.compared)]
  return `${round(result.comparison)} ${signOf(scenario)} (${round(least)}–${round(most)})`
}

/** The target in words, and whether it was reached. */
export function verdict(scenario, value) {
  const { target, goal } = scenario
  const outcome = value <= target ? 'pass' : 'FAIL'
  const goalText = goal === target ? '' : `; goal ${goal}: ${value <= goal ? 'reached' : 'not yet'}`
  return `≤ ${target} ${signOf(scenario)}: ${outcome}${goalText}`
}

function round(value) {
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en-US')
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2)
}

/** A Markdown table, its columns aligned so that it reads in a terminal too. */
export function markdownTable(rows) {
  const columns = Object.keys(rows[0])
  const widths = columns.map((column) => Math.max(column.length, ...rows.map((row) => row[column].length)))
  const line = (cells) => `| ${cells.map((cell, index) => cell.padEnd(widths[index])).join(' | ')} |`
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`
  return [line(columns), rule, ...rows.map((row) => line(columns.map((column) => row[column])))].join('\n')
}
