import { FLOOR, proxiesOf } from './proxies/proxies.mjs'
import { median, shuffled } from './statistics.mjs'

/**
 * Runs one scenario: proxies take turns within each round, in random order, so that a slow minute of the machine meets all of
 * them; what counts is the median of the per-round comparisons with the floor.
 */
export async function runScenario({ lab, scenario, options, onRound }) {
  const { measurement } = scenario
  const proxies = proxiesOf(scenario)
  const prepared = new Map()
  for (const proxy of proxies) prepared.set(proxy, await measurement.prepare({ lab, proxy, scenario, options }))
  const rounds = []
  for (let round = 0; round < options.rounds; round++) {
    const results = new Map()
    for (const proxy of shuffled(proxies)) {
      const turn = { lab, proxy, scenario, prepared: prepared.get(proxy), options }
      results.set(proxy, await measurement.measure(turn))
    }
    rounds.push(results)
    onRound?.(round)
  }
  for (const proxy of proxies) await measurement.finish({ prepared: prepared.get(proxy) })
  return { scenario, results: proxies.map((proxy) => summary(scenario, proxy, rounds)) }
}

function summary(scenario, proxy, rounds) {
  const own = rounds.map((results) => results.get(proxy))
  const metrics = Object.keys(own[0]).filter((metric) => typeof own[0][metric] === 'number')
  const compared = rounds.map((results) => compare(scenario, results.get(proxy), results.get(FLOOR)))
  return {
    proxy: proxy.name,
    title: proxy.title,
    medians: Object.fromEntries(metrics.map((metric) => [metric, median(own.map((result) => result[metric]))])),
    comparison: median(compared),
    compared,
  }
}

function compare({ headline, comparison }, own, floor) {
  if (comparison === 'ratio') return own[headline] / floor[headline]
  return comparison === 'difference' ? own[headline] - floor[headline] : own[headline]
}
