import { expect, test } from 'vitest'
import { chartSvg } from '../../bench/chart-svg.mjs'
import { reportOf } from '../../bench/report.mjs'
import { scenarioNumbers } from '../../bench/results-data.mjs'
import { runScenario } from '../../bench/run-scenario.mjs'
import { variantsOf, withVariants } from '../../bench/variants.mjs'

const node20 = { version: '20.20.2', program: '/node20' }
const node24 = { version: '24.9.0', program: '/node24' }
const revision = { commit: 'abc1234def', title: 'abc1234', folder: 'file:///before/dist/' }

interface Variant {
  readonly name: string
  readonly node?: typeof node20 | undefined
  readonly build?: typeof revision | undefined
}

interface Turn {
  readonly proxy: Variant
  readonly prepared: { readonly batch: number; readonly round: number }
}

const floor = { name: 'floor', title: 'floor' }
const ours = { name: 'ours', title: 'ours', isOwn: true }
const server = { name: 'server', title: 'server', isPeer: true, isNodeProgram: false, version: () => '1.0' }

/** A suite whose costs are `cost` of a variant, in the batch that it was prepared for. */
function bench(
  cost: (variant: Variant, batch: number) => number,
  options: {
    readonly nodes?: readonly (typeof node20)[]
    readonly revision?: typeof revision
    readonly batches?: number
  },
) {
  const starts = new Map<string, number>()
  const measurement = {
    prepare: async ({ proxy }: { proxy: Variant }) => {
      const key = `${proxy.name} ${proxy.node?.version} ${proxy.build?.commit}`
      const batch = starts.get(key) ?? 0
      starts.set(key, batch + 1)
      return { batch, round: 0 }
    },
    measure: async ({ proxy, prepared }: Turn) => {
      const microseconds = cost(proxy, prepared.batch)
      return { cost: microseconds, mainThreadMicroseconds: microseconds / 2 }
    },
    finish: async () => {},
  }
  const scenario = {
    name: 'chat',
    title: 'chat',
    unit: 'µs',
    measurement,
    headline: 'cost',
    comparison: 'ratio',
  }
  const suite = withVariants(
    {
      proxiesOf: () => [floor, ours, server],
      referencesOf: () => [{ name: 'floor', column: 'against the floor' }],
      verdictOf: (_scenario: unknown, { proxy }: { proxy: string }) => (proxy === 'ours' ? 'judged' : ''),
    },
    options,
  )
  const run = () => runScenario({ lab: {}, suite, scenario, options: { rounds: 2, ...options }, onRound: () => {} })
  return { starts, suite, run }
}

test('has a variant of a proxy per Node, of signalbox also per build, and only one of other programs', () => {
  const variants: readonly Variant[] = variantsOf([floor, ours, server], { nodes: [node20, node24], revision })

  expect(variants.map(({ name, node, build }) => [name, node?.version, build?.title])).toEqual([
    ['floor', '20.20.2', undefined],
    ['floor', '24.9.0', undefined],
    ['ours', '20.20.2', undefined],
    ['ours', '20.20.2', 'abc1234'],
    ['ours', '24.9.0', undefined],
    ['ours', '24.9.0', 'abc1234'],
    ['server', undefined, undefined],
  ])
})

test('each Node is held against the floor on the same Node, and against the first one', async () => {
  const costs = { floor: { '20.20.2': 10, '24.9.0': 8 }, ours: { '20.20.2': 20, '24.9.0': 12 } }
  const { run } = bench(
    ({ name, node }) => (name === 'server' ? 4 : costs[name as 'floor' | 'ours'][node?.version as '20.20.2']),
    { nodes: [node20, node24] },
  )

  const { results } = await run()

  const of = (node: string, proxy: string) =>
    results.find((result: { node?: string; proxy: string }) => result.node === node && result.proxy === proxy)
  expect(of('20.20.2', 'ours')).toMatchObject({ comparisons: { floor: { median: 2 } } })
  expect(of('20.20.2', 'ours').comparisons).not.toHaveProperty('node')
  expect(of('24.9.0', 'ours')).toMatchObject({ comparisons: { floor: { median: 1.5 }, node: { median: 0.6 } } })
  // Measured once, it is held against the floor of each.
  expect(of('20.20.2', 'server')).toMatchObject({ comparisons: { floor: { median: 0.4 } } })
  expect(of('24.9.0', 'server')).toMatchObject({ comparisons: { floor: { median: 0.5 } } })
})

test('two builds are paired within each round, in every batch of fresh processes, and each is held against the floor', async () => {
  // The machine is twice as slow in the second batch, which the pairs do not see.
  const { run, starts } = bench(
    ({ name, build }, batch) => (name === 'ours' ? (build === undefined ? 18 : 20) : 10) * (batch + 1),
    { revision, batches: 2 },
  )

  const { results } = await run()

  expect(results.map(({ title }: { title: string }) => title)).toEqual([
    'floor',
    'ours',
    'ours at abc1234',
    'server 1.0',
  ])
  const [, now, before] = results
  expect(now).toMatchObject({
    comparisons: {
      floor: { median: 1.8 },
      revision: { median: 0.9, least: 0.9, most: 0.9, batches: [0.9, 0.9] },
      'revision-main-thread': { median: 0.9 },
    },
  })
  expect(before).toMatchObject({ build: 'abc1234def', comparisons: { floor: { median: 2 } } })
  expect(before.comparisons).not.toHaveProperty('revision')
  expect([...starts.values()]).toEqual([2, 2, 2, 2])
})

test('the report of two builds shows the pair in fine steps with each batch, and judges this tree only', async () => {
  const { run, suite } = bench(({ name, build }) => (name === 'ours' && build === undefined ? 18.1 : 20), {
    revision,
    batches: 2,
  })

  const rows = reportOf(suite, [await run()], []).split('\n')

  expect(rows[0]).toContain('| against abc1234')
  expect(rows[0]).toContain('| main thread against abc1234')
  expect(rows[3]).toContain('0.905 × (0.905–0.905); batches 0.905 0.905')
  expect(rows[3]).toContain('judged')
  expect(rows[4]).not.toContain('judged')
})

test('the report of two Nodes shows them side by side, and then each by itself', async () => {
  const { run, suite } = bench(({ node }) => (node === node24 ? 5 : 10), { nodes: [node20, node24] })

  const report = reportOf(suite, [await run()], ['20.20.2', '24.9.0'])

  const [head, , , row] = report.split('\n')
  const cells = (line = '') => line.split('|').map((cell) => cell.trim())
  const beside = Object.fromEntries(cells(head).map((column, index) => [column, cells(row)[index]]))
  expect(beside).toMatchObject({
    proxy: 'ours',
    'Node 20.20.2': '10.0 µs',
    '20.20.2: against the floor': '1.00 × (1.00–1.00)',
    'Node 24.9.0': '5.00 µs',
    '24.9.0: against Node 20.20.2': '0.50 × (0.50–0.50)',
    '24.9.0: target': 'judged',
  })
  expect(report.split('\n').filter((line) => line.startsWith('### '))).toEqual(['### Node 20.20.2', '### Node 24.9.0'])
})

test('the chart has a bar for each Node, the newest first, and one bar for what runs on no Node', async () => {
  const { run } = bench(({ name, node }) => (name === 'server' ? 4 : node === node24 ? 50 : 100), {
    nodes: [node20, node24],
  })
  const numbers = {
    command: 'npm run bench',
    machine: 'a machine',
    date: '2026-01-01',
    nodes: ['20.20.2', '24.9.0'],
    scenarios: [scenarioNumbers(await run())],
  }

  const svg = chartSvg(numbers, { ownName: 'ours' })

  expect(svg).toContain('ours 50.0 (Node 24.9.0) 100 (Node 20.20.2), server 1.0 4.00.')
  expect(svg).toContain('Bars from above: Node 24.9.0, Node 20.20.2.')
  expect(svg.match(/<rect class="(?:own|bar)(?: older)?"/g)).toEqual([
    '<rect class="bar"',
    '<rect class="bar older"',
    '<rect class="own"',
    '<rect class="own older"',
    '<rect class="bar"',
  ])
})
