import { expect, test } from 'vitest'
import { chartSvg } from '../../bench/chart-svg.mjs'
import { scenarioNumbers } from '../../bench/results-data.mjs'
import { withSection } from '../../bench/results-sections.mjs'

const headings = ['First', 'Second', 'Third']

test('writing one section of the results leaves the others as they are', () => {
  const text = '# Benchmark results\n\n## First\n\none\n\n| a |\n\n## Third\n\nthree\n'

  expect(withSection(text, { heading: 'Third', body: '3', headings })).toBe(
    '# Benchmark results\n\n## First\n\none\n\n| a |\n\n## Third\n\n3\n',
  )
  expect(withSection(text, { heading: 'Second', body: '2', headings })).toBe(
    '# Benchmark results\n\n## First\n\none\n\n| a |\n\n## Second\n\n2\n\n## Third\n\nthree\n',
  )
})

test('a proxy that failed has a reason in the numbers and no value', () => {
  const scenario = { name: 'chat', title: 'chat', unit: 'µs', headline: 'cpu' }
  const results = [
    { proxy: 'ours', title: 'ours', medians: { cpu: 7, p50Ms: 1 } },
    { proxy: 'peer', title: 'peer', reason: 'failed: status 500' },
  ]

  expect(scenarioNumbers({ scenario, results }).values).toEqual([
    { name: 'ours', title: 'ours', value: 7 },
    { name: 'peer', title: 'peer', reason: 'failed: status 500' },
  ])
})

const numbers = {
  command: 'npm run bench -- --peers --write',
  machine: '2 cores',
  date: '2026-11-21',
  scenarios: [
    {
      name: 'chat',
      title: 'chat & <small>',
      unit: 'CPU µs/request',
      values: [
        { name: 'floor', title: 'floor', value: 50 },
        { name: 'ours', title: 'ours', value: 100 },
        { name: 'peer', title: 'peer', reason: 'failed' },
        { name: 'absent', title: 'absent peer', reason: 'not here' },
      ],
    },
    {
      name: 'edits',
      title: 'edits',
      unit: 'CPU µs/request',
      values: [
        { name: 'peer', title: 'peer', value: 1 },
        { name: 'absent', title: 'absent peer', reason: 'not here' },
      ],
    },
  ],
}

test('bars of the chart are as long as their values, ours stands out, and what has no value has a dash', () => {
  const svg = chartSvg(numbers, { ownName: 'ours' })

  const bars = [...svg.matchAll(/<rect class="(bar|own)".*? width="([\d.]+)"/g)].map(([, style, width]) => ({
    style,
    width: Number(width),
  }))
  expect(bars.map(({ style }) => style)).toEqual(['bar', 'own', 'bar'])
  expect((bars[1]?.width ?? 0) / (bars[0]?.width ?? 1)).toBeCloseTo(2, 1)
  expect(svg.match(/>–<\/text>/g)).toHaveLength(1)
})

test('a proxy without any number is named below the chart, and has no row', () => {
  const svg = chartSvg(numbers, { ownName: 'ours' })

  expect(svg.match(/absent peer/g)).toHaveLength(1)
  expect(svg).toContain(' · absent peer: not measured</text>')
})

test('the chart keeps its text as text, escaped, and has colours for a dark page', () => {
  const svg = chartSvg(numbers, { ownName: 'ours' })

  expect(svg).toContain('>chat &amp; &lt;small&gt;</text>')
  expect(svg).toContain('<desc>chat &amp; &lt;small&gt;, CPU µs/request: floor 50.0, ours 100, peer not measured. ')
  expect(svg).toContain('prefers-color-scheme: dark')
  expect(svg).not.toMatch(/NaN|undefined/)
})
