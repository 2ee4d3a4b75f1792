import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Preset, presets } from '../../src/vendors/presets/presets.ts'
import { ROOT, readPage, readPages, section } from './support/markdown.ts'

const readme = readPage('README.md')
const results = { path: 'bench/RESULTS.md', text: readFileSync(join(ROOT, 'bench/RESULTS.md'), 'utf8') }

/** Rows of the first table below a heading, by column. A scenario is named only in its first row. */
function rowsOf(heading: string): Record<string, string>[] {
  const lines = section(results, heading)
    .split('\n')
    .filter((line) => line.startsWith('|'))
  const [names = [], , ...rows] = lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
  let scenario = ''
  const end = rows.findIndex((row) => row.length !== names.length)
  return rows.slice(0, end === -1 ? undefined : end).map((row) => {
    scenario = row[0] || scenario
    return { ...Object.fromEntries(names.map((name, index) => [name, row[index] ?? ''])), scenario }
  })
}

/** How many times the CPU time of another proxy one takes, in a scenario. */
function ratio(heading: string, scenario: string, proxy: string, column: RegExp): number {
  const row = rowsOf(heading).find((each) => each['scenario'] === scenario && each['proxy']?.startsWith(proxy))
  const [, cell = ''] = Object.entries(row ?? {}).find(([name]) => column.test(name)) ?? []
  return Number(/^([\d.]+) ×/.exec(cell)?.[1])
}

const FLOOR = 'Against a bare Node proxy'
const CHAT = 'chat, JSON, 32 connections'
const STREAMS = ['chat, 200 streams, an event every 20 ms', 'chat, 204 events at once, 16 connections']
const NODES = [/^20\..*: against the floor/, /^24\..*: against the floor/]

function range(scenarios: readonly string[]): string {
  const ratios = scenarios.flatMap((scenario) => NODES.map((node) => ratio(FLOOR, scenario, 'signalbox', node)))
  return `${Math.min(...ratios).toFixed(1)} to ${Math.max(...ratios).toFixed(1)} times`
}

test('the README says of speed what the benchmark has measured', () => {
  const [on20 = 0, on24 = 0] = NODES.map((node) => ratio(FLOOR, CHAT, 'signalbox', node))
  const against = (proxy: string) =>
    ratio('Against other proxies and gateways', CHAT, proxy, /^20\..*: against signalbox$/)

  const speed = section(readme, 'Speed').replaceAll(/\s+/g, ' ')

  expect(speed).toContain(`takes ${on20} times the proxy's CPU time on Node 20, and ${on24} times on Node 24`)
  expect(speed).toContain(`passed through takes ${range(STREAMS)} the proxy's`)
  expect(speed).toContain(`translated one ${range(['the same, translated from Anthropic'])}`)
  expect(speed).toContain(`Portkey's gateway takes ${against('Portkey')} times`)
  expect(speed).toContain(`\`@fastify/http-proxy\` ${against('@fastify/http-proxy')} times`)
  expect(speed).toContain(`nginx ${against('nginx')} times`)
})

test('pages count the presets as they are', () => {
  // One preset only reranks, in a dialect of its own.
  const count = Object.values<Preset>(presets).filter(({ serves }) => serves.some((one) => one !== 'rerank')).length
  const counts = readPages().flatMap(({ text }) =>
    [...text.matchAll(/(\d+) servers that speak OpenAI's dialect/g)].map(([, number]) => Number(number)),
  )
  const [, more] = /Groq, Ollama and (\d+) more servers/.exec(readme.text) ?? []

  expect(counts.length).toBeGreaterThan(1)
  expect(new Set(counts)).toEqual(new Set([count]))
  expect(Number(more)).toBe(count - 2)
})

test('the README says what a small chat costs on Node 20 as the benchmark has measured it', () => {
  const measured = (proxy: string) => {
    const row = rowsOf(FLOOR).find((each) => each['scenario'] === CHAT && each['proxy'] === proxy)
    const [, cell = ''] = Object.entries(row ?? {}).find(([name]) => /^Node 20/.test(name)) ?? []
    return Number(/^([\d.]+) CPU µs\/request$/.exec(cell)?.[1])
  }

  expect(readme.text).toContain(
    `a small chat takes ${measured('signalbox')} µs of CPU time on Node 20, and ${measured('signalbox, SQLite')} µs with SQLite. ` +
      `A bare Node proxy takes ${measured('bare Node proxy')} µs`,
  )
})
