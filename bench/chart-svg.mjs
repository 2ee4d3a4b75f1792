import { rounded } from './rounded.mjs'

const WIDTH = 900
const MARGIN = 24
const GAP = 28
const COLUMNS = 2
const PANEL_WIDTH = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS
const LABEL_WIDTH = 178
const VALUE_WIDTH = 56
const BAR_WIDTH = PANEL_WIDTH - LABEL_WIDTH - VALUE_WIDTH
const BAR_HEIGHT = 12
/** Distance between two bars of a proxy, on different versions of Node. */
const BAR_STEP = 14
const ROW_GAP = 8
const PANEL_HEAD = 44
const CHART_HEAD = 78
const CHART_FOOT = 52

/** Our own bar is highlighted: like the text, it is darker in the light scheme and lighter in the dark one. */
const STYLE = `
    text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; font-size: 12px; fill: #1f2937 }
    .card { fill: #ffffff; stroke: #d1d5db }
    .heading { font-size: 18px; font-weight: 600 }
    .title { font-weight: 600 }
    .note { font-size: 11px; fill: #6b7280 }
    .value { text-anchor: start }
    .bar { fill: #9ca3af }
    .own { fill: #2563eb }
    .older { opacity: 0.55 }
    .strong { font-weight: 600 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e5e7eb }
      .card { fill: #0d1117; stroke: #30363d }
      .note { fill: #9ca3af }
      .bar { fill: #6b7280 }
      .own { fill: #60a5fa }
    }`

/**
 * Draws the data of `results.json`: a panel for each scenario and a bar for each proxy, from zero, with the same scale within a
 * panel only. On several versions of Node a proxy has a bar for each, the newest first and the others paler. A proxy without a
 * number gets a dash, and one without any is named below.
 * @param {{ command: string, machine: string, date: string, nodes?: readonly string[], scenarios: readonly object[] }} numbers
 * @param {{ ownName: string }} options `ownName`: the proxy that stands out
 * @returns {string} an SVG document
 */
export function chartSvg(numbers, { ownName }) {
  const { command, machine, date } = numbers
  const nodes = newestFirst(numbers.nodes ?? [])
  const { scenarios, absent } = withoutAbsent(numbers.scenarios.map((scenario) => withRows(scenario, nodes)))
  const lines = Array.from({ length: Math.ceil(scenarios.length / COLUMNS) }, (_, line) =>
    scenarios.slice(line * COLUMNS, (line + 1) * COLUMNS),
  )
  const parts = []
  let top = CHART_HEAD
  for (const panels of lines) {
    for (const [column, scenario] of panels.entries())
      parts.push(panel(scenario, { left: MARGIN + column * (PANEL_WIDTH + GAP), top, ownName }))
    top += Math.max(...panels.map(({ rows }) => panelHeight(rows))) + GAP
  }
  const height = top - GAP + CHART_FOOT
  const description = scenarios.map(describe).join(' ')
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
  <title>What one request costs, in proxies and gateways</title>
  <desc>${escaped(description)}</desc>
  <style>${STYLE}
  </style>
  <rect class="card" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
${textAt(MARGIN, 34, 'heading', 'What one request costs, in proxies and gateways')}
${textAt(MARGIN, 54, 'note', `Shorter bars are better. Each panel has a scale of its own, from zero. Medians of rounds in turns, one core.${legend(nodes)}`)}
${parts.join('\n')}
${textAt(MARGIN, height - 34, 'note', [command, date, ...absent.map((title) => `${title}: not measured`)].join(' · '))}
${textAt(MARGIN, height - 16, 'note', machine)}
</svg>
`
}

const newestFirst = (nodes) => [...nodes].sort((left, right) => Number.parseInt(right, 10) - Number.parseInt(left, 10))

const legend = (nodes) =>
  nodes.length < 2 ? '' : ` Bars from above: ${nodes.map((node) => `Node ${node}`).join(', ')}.`

/** A scenario with a row for each proxy, its bars in the order of `nodes`. Proxies that do not run on Node have one bar. */
function withRows({ values, ...scenario }, nodes) {
  const rows = new Map()
  for (const { name, title, node, value } of values) {
    const row = rows.get(name) ?? { name, title, bars: [] }
    row.bars.push({ node, value })
    rows.set(name, row)
  }
  const order = ({ node }) => nodes.indexOf(node)
  for (const { bars } of rows.values()) bars.sort((left, right) => order(left) - order(right))
  return { ...scenario, rows: [...rows.values()] }
}

const isMeasured = ({ bars }) => bars.some(({ value }) => value !== undefined)

/** The scenarios without the proxies that have a number in none of them, and the titles of those. */
function withoutAbsent(scenarios) {
  const all = scenarios.flatMap(({ rows }) => rows)
  const present = new Set(all.filter(isMeasured).map(({ name }) => name))
  const isAbsent = ({ name }) => !present.has(name)
  return {
    scenarios: scenarios.map((scenario) => ({ ...scenario, rows: scenario.rows.filter((row) => !isAbsent(row)) })),
    absent: [...new Set(all.filter(isAbsent).map(({ title }) => title))],
  }
}

const rowHeight = ({ bars }) => (bars.length - 1) * BAR_STEP + BAR_HEIGHT + ROW_GAP
const panelHeight = (rows) => PANEL_HEAD + rows.reduce((height, row) => height + rowHeight(row), 0)

function panel({ title, unit, rows }, { left, top, ownName }) {
  const most = Math.max(...rows.flatMap(({ bars }) => bars.map(({ value }) => value ?? 0)))
  const lines = [textAt(left, top + 12, 'title', title), textAt(left, top + 29, 'note', unit)]
  let rowTop = top + PANEL_HEAD
  for (const row of rows) {
    const { name, title: proxyTitle, bars } = row
    const isOwn = name === ownName
    const strong = isOwn ? ' strong' : ''
    const center = rowTop + ((bars.length - 1) * BAR_STEP + BAR_HEIGHT) / 2
    lines.push(textAt(left, center + 4, `name${strong}`, proxyTitle))
    for (const [index, { value }] of bars.entries()) {
      const middle = rowTop + index * BAR_STEP + BAR_HEIGHT / 2
      const length = value === undefined || most === 0 ? 0 : Math.max(1, (value / most) * BAR_WIDTH)
      const style = `${isOwn ? 'own' : 'bar'}${index > 0 ? ' older' : ''}`
      if (value !== undefined) lines.push(bar({ left: left + LABEL_WIDTH, middle, length, style }))
      const shown = value === undefined ? '–' : rounded(value)
      lines.push(textAt(left + LABEL_WIDTH + length + 6, middle + 4, `value${strong}`, shown))
    }
    rowTop += rowHeight(row)
  }
  return lines.join('\n')
}

function bar({ left, middle, length, style }) {
  const place = `x="${left}" y="${middle - BAR_HEIGHT / 2}" width="${length.toFixed(1)}" height="${BAR_HEIGHT}"`
  return `  <rect class="${style}" ${place} rx="2"/>`
}

function textAt(left, baseline, style, text) {
  return `  <text class="${style}" x="${Number(left.toFixed(1))}" y="${baseline}">${escaped(text)}</text>`
}

/** Describes a panel for screen readers. */
function describe({ title, unit, rows }) {
  const shown = ({ node, value }) =>
    `${value === undefined ? 'not measured' : rounded(value)}${node === undefined ? '' : ` (Node ${node})`}`
  const each = rows.map(({ title: name, bars }) => `${name} ${bars.map(shown).join(' ')}`)
  return `${title}, ${unit}: ${each.join(', ')}.`
}

const ENTITIES = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
])

const escaped = (text) => text.replaceAll(/[&<>"]/g, (character) => ENTITIES.get(character))
