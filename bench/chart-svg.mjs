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
const ROW_HEIGHT = 20
const PANEL_HEAD = 44
const CHART_HEAD = 78
const CHART_FOOT = 52

/** Our own bar stands out; it has a darker place in the light scheme and a lighter one in the dark, as the text has. */
const STYLE = `
    text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; font-size: 12px; fill: #1f2937 }
    .card { fill: #ffffff; stroke: #d1d5db }
    .heading { font-size: 18px; font-weight: 600 }
    .title { font-weight: 600 }
    .note { font-size: 11px; fill: #6b7280 }
    .value { text-anchor: start }
    .bar { fill: #9ca3af }
    .own { fill: #2563eb }
    .strong { font-weight: 600 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e5e7eb }
      .card { fill: #0d1117; stroke: #30363d }
      .note { fill: #9ca3af }
      .bar { fill: #6b7280 }
      .own { fill: #60a5fa }
    }`

/**
 * Draws what `results.json` holds: a panel for each scenario and a bar for each proxy, from zero, with the same scale within a
 * panel only. A proxy without a number gets a dash, and one without any is named below.
 * @param {{ command: string, machine: string, date: string, scenarios: readonly object[] }} numbers
 * @param {{ ownName: string }} options `ownName`: the proxy that stands out
 * @returns {string} an SVG document
 */
export function chartSvg(numbers, { ownName }) {
  const { command, machine, date } = numbers
  const { scenarios, absent } = withoutAbsent(numbers.scenarios)
  const rows = Array.from({ length: Math.ceil(scenarios.length / COLUMNS) }, (_, row) =>
    scenarios.slice(row * COLUMNS, (row + 1) * COLUMNS),
  )
  const parts = []
  let top = CHART_HEAD
  for (const panels of rows) {
    for (const [column, scenario] of panels.entries())
      parts.push(panel(scenario, { left: MARGIN + column * (PANEL_WIDTH + GAP), top, ownName }))
    top += Math.max(...panels.map(({ values }) => panelHeight(values))) + GAP
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
${textAt(MARGIN, 54, 'note', 'Shorter bars are better. Each panel has a scale of its own, from zero. Medians of rounds in turns, one core.')}
${parts.join('\n')}
${textAt(MARGIN, height - 34, 'note', [command, date, ...absent.map((title) => `${title}: not measured`)].join(' · '))}
${textAt(MARGIN, height - 16, 'note', machine)}
</svg>
`
}

/** The scenarios without the proxies that have a number in none of them, and the titles of those. */
function withoutAbsent(scenarios) {
  const all = scenarios.flatMap(({ values }) => values)
  const present = new Set(all.filter(({ value }) => value !== undefined).map(({ name }) => name))
  const isAbsent = ({ name }) => !present.has(name)
  return {
    scenarios: scenarios.map((scenario) => ({ ...scenario, values: scenario.values.filter((one) => !isAbsent(one)) })),
    absent: [...new Set(all.filter(isAbsent).map(({ title }) => title))],
  }
}

const panelHeight = (values) => PANEL_HEAD + values.length * ROW_HEIGHT

function panel({ title, unit, values }, { left, top, ownName }) {
  const most = Math.max(...values.map(({ value }) => value ?? 0))
  const lines = [textAt(left, top + 12, 'title', title), textAt(left, top + 29, 'note', unit)]
  for (const [index, { name, title: proxyTitle, value }] of values.entries()) {
    const middle = top + PANEL_HEAD + index * ROW_HEIGHT + BAR_HEIGHT / 2
    const strong = name === ownName ? ' strong' : ''
    lines.push(textAt(left, middle + 4, `name${strong}`, proxyTitle))
    const length = value === undefined || most === 0 ? 0 : Math.max(1, (value / most) * BAR_WIDTH)
    if (value !== undefined) lines.push(bar({ left: left + LABEL_WIDTH, middle, length, isOwn: name === ownName }))
    const shown = value === undefined ? '–' : rounded(value)
    lines.push(textAt(left + LABEL_WIDTH + length + 6, middle + 4, `value${strong}`, shown))
  }
  return lines.join('\n')
}

function bar({ left, middle, length, isOwn }) {
  const place = `x="${left}" y="${middle - BAR_HEIGHT / 2}" width="${length.toFixed(1)}" height="${BAR_HEIGHT}"`
  return `  <rect class="${isOwn ? 'own' : 'bar'}" ${place} rx="2"/>`
}

function textAt(left, baseline, style, text) {
  return `  <text class="${style}" x="${Number(left.toFixed(1))}" y="${baseline}">${escaped(text)}</text>`
}

/** A panel for readers who hear it. */
function describe({ title, unit, values }) {
  const each = values.map(
    ({ title: name, value }) => `${name} ${value === undefined ? 'not measured' : rounded(value)}`,
  )
  return `${title}, ${unit}: ${each.join(', ')}.`
}

const ENTITIES = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
])

const escaped = (text) => text.replaceAll(/[&<>"]/g, (character) => ENTITIES.get(character))
