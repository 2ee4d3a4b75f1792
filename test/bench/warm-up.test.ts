import { expect, test } from 'vitest'
import { repeatUntilSteady } from '../../bench/measurements/load.mjs'

/** How many turns a program gets whose answers cost that much, one turn after the other. */
async function turnsFor(cpuOfFirst: number, costs: readonly number[]): Promise<number> {
  let turns = 0
  await repeatUntilSteady(cpuOfFirst, async () => {
    turns += 1
    return costs[turns - 1]!
  })
  return turns
}

test.each([
  ['one that costs the same at once', 100, [99], 1],
  ['one that becomes dearer', 100, [180], 1],
  ['one that becomes cheaper for two turns', 300, [200, 120, 118], 3],
  ['one that never ends becoming cheaper', 640, [320, 160, 80, 40, 20, 10, 5], 6],
])('a program is warmed up until an answer becomes no cheaper: %s', async (_, first, costs, turns) => {
  expect(await turnsFor(first, costs)).toBe(turns)
})
