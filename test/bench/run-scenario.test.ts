import { expect, test } from 'vitest'
import { runScenario } from '../../bench/run-scenario.mjs'

const floor = { name: 'floor', title: 'floor', costs: [10, 20, 30] }
const ours = { name: 'ours', title: 'ours', costs: [20, 30, 90] }
const options = { rounds: 3, seconds: 1 }

interface Proxy {
  readonly name: string
  readonly costs: readonly (number | string)[]
}

/** A measurement whose costs are known; a text is what it fails with. */
function bench(proxies: readonly Proxy[], { comparison = 'ratio' } = {}) {
  const finished: string[] = []
  const turns = new Map<string, number>()
  const measurement = {
    prepare: async ({ proxy }: { proxy: Proxy }) => proxy,
    measure: async ({ proxy }: { proxy: Proxy }) => {
      const turn = turns.get(proxy.name) ?? 0
      turns.set(proxy.name, turn + 1)
      const cost = proxy.costs[turn]
      if (typeof cost === 'string') throw new Error(cost)
      return { cost }
    },
    finish: async ({ prepared }: { prepared: Proxy }) => finished.push(prepared.name),
  }
  const scenario = { measurement, headline: 'cost', comparison }
  const suite = { proxiesOf: () => proxies, referencesOf: () => [{ name: 'floor', column: 'against the floor' }] }
  return { finished, turns, run: () => runScenario({ lab: {}, suite, scenario, options, onRound: () => {} }) }
}

test('proxies are compared within each round, and the comparison is the median of those', async () => {
  const { run } = bench([floor, ours])

  const { results } = await run()

  expect(results[1]).toMatchObject({
    proxy: 'ours',
    medians: { cost: 30 },
    comparisons: { floor: { median: 2, least: 1.5, most: 3 } },
  })
})

test('a difference to the floor is taken within each round too', async () => {
  const { run } = bench([floor, ours], { comparison: 'difference' })

  const { results } = await run()

  expect(results[1]).toMatchObject({ comparisons: { floor: { median: 10, least: 10, most: 60 } } })
})

test('a peer that answers wrong once gets no number, takes no further turn, and is stopped', async () => {
  const peer = { name: 'peer', title: 'peer', isPeer: true, costs: [1, 'peer: status 500:\n| oops', 1] }
  const { run, finished, turns } = bench([floor, peer])

  const { results } = await run()

  expect(results[1]).toEqual({ proxy: 'peer', title: 'peer', isPeer: true, reason: 'failed: status 500: / oops' })
  expect(turns.get('peer')).toBe(2)
  expect(finished.sort()).toEqual(['floor', 'peer'])
})

test("ends the run if the benchmark's proxy answers wrong", async () => {
  const { run } = bench([floor, { ...ours, costs: ['no usage'] }])

  await expect(run()).rejects.toThrow('no usage')
})

test('a peer that is not installed is never started, and says why', async () => {
  const peer = { name: 'peer', title: 'peer', isPeer: true, costs: [], missing: () => 'not measured: not here' }
  const { run, turns } = bench([floor, peer])

  const { results } = await run()

  expect(results[1]).toMatchObject({ reason: 'not measured: not here' })
  expect(turns.has('peer')).toBe(false)
})
