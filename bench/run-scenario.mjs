import { median, shuffled } from './statistics.mjs'

/**
 * Runs one scenario of a suite: proxies take turns within each round, in random order, so that a slow minute of the machine
 * meets all of them; what counts is the median of the per-round comparisons. A fault of ours ends the run. A peer that
 * answers wrong is out of the scenario and named with its fault, whatever it had reached before.
 */
export async function runScenario({ lab, suite, scenario, options, onRound }) {
  const { measurement } = scenario
  const proxies = suite.proxiesOf(scenario)
  const reasons = new Map()
  for (const proxy of proxies) {
    const reason = proxy.missing?.()
    if (reason !== undefined) reasons.set(proxy, reason)
  }
  const attempt = async (proxy, step) => {
    try {
      return await step()
    } catch (error) {
      if (!proxy.isPeer) throw error
      reasons.set(proxy, `failed: ${oneLine(error.message.replace(`${proxy.name}: `, ''))}`)
      return undefined
    }
  }
  const taking = () => proxies.filter((proxy) => !reasons.has(proxy))

  const prepared = new Map()
  for (const proxy of taking()) {
    const ready = await attempt(proxy, () => measurement.prepare({ lab, proxy, scenario, options }))
    if (ready !== undefined) prepared.set(proxy, ready)
  }
  const rounds = []
  for (let round = 0; round < options.rounds; round++) {
    const results = new Map()
    for (const proxy of shuffled(taking())) {
      const turn = { lab, proxy, scenario, prepared: prepared.get(proxy), options }
      results.set(proxy.name, await attempt(proxy, () => measurement.measure(turn)))
    }
    rounds.push(results)
    onRound?.(round)
  }
  for (const ready of prepared.values()) await measurement.finish({ prepared: ready })
  const references = suite.referencesOf(scenario)
  const results = proxies.map((proxy) => {
    const { name, title, isPeer = false } = proxy
    const reason = reasons.get(proxy)
    const own = { proxy: name, title: [title, proxy.version?.()].filter(Boolean).join(' '), isPeer }
    return reason === undefined ? { ...own, ...summary(references, scenario, name, rounds) } : { ...own, reason }
  })
  return { scenario, results }
}

/** Medians of a proxy's rounds, and what they are against each reference, by its name. */
export function summary(references, scenario, name, rounds) {
  const own = rounds.map((results) => results.get(name))
  const metrics = Object.keys(own[0]).filter((metric) => typeof own[0][metric] === 'number')
  const comparisons = references.map((reference) => {
    const each = rounds.map((results) => compare(scenario, results.get(name), results.get(reference.name)))
    return [reference.name, { median: median(each), least: Math.min(...each), most: Math.max(...each) }]
  })
  return {
    medians: Object.fromEntries(metrics.map((metric) => [metric, median(own.map((result) => result[metric]))])),
    comparisons: Object.fromEntries(comparisons),
  }
}

function compare({ headline, comparison }, own, reference) {
  if (comparison === 'ratio') return own[headline] / reference[headline]
  return comparison === 'difference' ? own[headline] - reference[headline] : own[headline]
}

const LONGEST_REASON = 240

function oneLine(message) {
  const text = message.replaceAll(/\s+/g, ' ').replaceAll('|', '/').trim()
  return text.length > LONGEST_REASON ? `${text.slice(0, LONGEST_REASON)}…` : text
}
