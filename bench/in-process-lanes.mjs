import { median, quantile, shuffled } from './statistics.mjs'

const PARALLEL = 32
const WARM_UP = 20

/**
 * Lets lanes take turns, round by round, in one process, and prints the CPU time of a call of the first, and by how much each other
 * differs: the median of the differences, and the difference of the best tenths. `flush` ends a round of its lane.
 */
export async function compareLanes(lanes, { perRound, rounds }) {
  const costs = lanes.map(() => [])
  for (let index = 0; index < WARM_UP + rounds; index++) {
    if (index === WARM_UP) for (const ofLane of costs) ofLane.length = 0
    // The order changes in each round, so that no lane always follows the same one.
    for (const [place, lane] of shuffled([...lanes.entries()])) costs[place].push(await round(lane, perRound))
  }
  const [first] = costs
  console.log(`${lanes[0].name}: ${median(first).toFixed(2)} CPU µs/request`)
  for (const [place, { name }] of lanes.entries()) {
    if (place === 0) continue
    const differences = costs[place].map((cost, index) => cost - first[index])
    const low = quantile(costs[place], 0.1) - quantile(first, 0.1)
    console.log(`${name}: ${signed(median(differences))} µs/request, ${signed(low)} between the best tenths`)
  }
}

async function round({ once, flush }, perRound) {
  const before = process.cpuUsage()
  for (let done = 0; done < perRound; done += PARALLEL) await Promise.all(Array.from({ length: PARALLEL }, once))
  await flush?.()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / perRound
}

function signed(value) {
  return `${value < 0 ? '' : '+'}${value.toFixed(2)}`
}
