import { median, shuffled } from './statistics.mjs'
import { comparisonOf, keyOf, referenceVariant, variantsOf } from './variants.mjs'

/**
 * Runs one scenario of a suite: proxies take turns within each round, in random order, so that a slow minute of the machine
 * affects all of them; the result is the median of the per-round comparisons. All of them are restarted `options.batches` times, because
 * two processes of the same program differ too. A fault of our own proxy ends the run. A peer with a wrong answer is removed from the
 * scenario and named with its fault, whatever its earlier results.
 * @returns `results`: for each of `options.nodes` one of each proxy and build, in order
 */
export async function runScenario({ lab, suite, scenario, options, onRound }) {
  const { nodes = [], revision, batches = 1 } = options
  const variants = variantsOf(suite.proxiesOf(scenario), { nodes, revision })
  const reasons = new Map()
  for (const variant of variants) {
    const reason = variant.missing?.()
    if (reason !== undefined) reasons.set(variant, reason)
  }
  const rounds = []
  for (let batch = 0; batch < batches; batch++) {
    const taking = () => variants.filter((variant) => !reasons.has(variant))
    for (const results of await runBatch({ lab, scenario, options, taking, reasons, onRound }))
      rounds.push({ batch, results })
  }
  const references = suite.referencesOf(scenario)
  const results = (nodes.length === 0 ? [undefined] : nodes).flatMap((node) =>
    variants
      .filter((variant) => variant.node === undefined || variant.node === node)
      .map((own) => {
        const reason = reasons.get(own)
        const given = { scenario, references, variants, own, node, rounds }
        return { ...describe(own, node), ...(reason === undefined ? summary(given) : { reason }) }
      }),
  )
  return { scenario, results }
}

/** Starts the proxies, measures them in rounds, and stops them. @returns the results of each round, by variant */
async function runBatch({ lab, scenario, options, taking, reasons, onRound }) {
  const { measurement } = scenario
  const attempt = async (variant, step) => {
    try {
      return await step()
    } catch (error) {
      if (!variant.isPeer) throw error
      reasons.set(variant, `failed: ${oneLine(error.message.replace(`${variant.name}: `, ''))}`)
      return undefined
    }
  }
  const prepared = new Map()
  const rounds = []
  try {
    for (const proxy of taking()) {
      const ready = await attempt(proxy, () => measurement.prepare({ lab, proxy, scenario, options }))
      if (ready !== undefined) prepared.set(proxy, ready)
    }
    for (let round = 0; round < options.rounds; round++) {
      const results = new Map()
      for (const proxy of shuffled(taking())) {
        const turn = { lab, proxy, scenario, prepared: prepared.get(proxy), options }
        results.set(proxy, await attempt(proxy, () => measurement.measure(turn)))
      }
      rounds.push(results)
      onRound?.(round)
    }
  } finally {
    for (const ready of prepared.values()) await measurement.finish({ prepared: ready })
  }
  return rounds
}

function describe({ name, title, version, isPeer = false, isNodeProgram, build }, node) {
  return {
    proxy: name,
    title: [title, build === undefined ? version?.() : `at ${build.title}`].filter(Boolean).join(' '),
    isPeer,
    ...(node === undefined ? {} : { node: node.version }),
    ...(isNodeProgram === false ? { isNodeProgram } : {}),
    ...(build === undefined ? {} : { build: build.commit }),
  }
}

/** Medians of a variant's rounds, and their comparison with each reference, by the reference's key. */
function summary({ scenario, references, variants, own, node, rounds }) {
  const owned = rounds.map(({ results }) => results.get(own))
  const metrics = Object.keys(owned[0]).filter((metric) => typeof owned[0][metric] === 'number')
  const comparisons = references.map((reference) => {
    const other = referenceVariant(variants, reference, { own, node })
    return [keyOf(reference), comparisonWith({ scenario, reference, own, other, rounds })]
  })
  return {
    medians: Object.fromEntries(metrics.map((metric) => [metric, median(owned.map((result) => result[metric]))])),
    comparisons: Object.fromEntries(comparisons.filter(([, comparison]) => comparison !== undefined)),
  }
}

/**
 * The paired comparison of one variant with another: the median over all rounds with the least and the greatest, and the
 * median of each batch. Undefined if either value is missing in a round.
 */
function comparisonWith({ scenario, reference, own, other, rounds }) {
  const comparison = comparisonOf(scenario, reference)
  const metric = reference.metric ?? scenario.headline
  const each = rounds.map(({ batch, results }) => ({
    batch,
    value: compare(comparison, results.get(own)?.[metric], results.get(other)?.[metric]),
  }))
  const values = each.map(({ value }) => value)
  if (values.some((value) => value === undefined)) return undefined
  const batches = [...new Set(each.map(({ batch }) => batch))].map((batch) =>
    median(each.filter((one) => one.batch === batch).map(({ value }) => value)),
  )
  return { median: median(values), least: Math.min(...values), most: Math.max(...values), batches }
}

function compare(comparison, own, other) {
  if (comparison === 'absolute') return own
  if (own === undefined || other === undefined) return undefined
  return comparison === 'ratio' ? own / other : own - other
}

const MAX_REASON = 240

function oneLine(message) {
  const text = message.replaceAll(/\s+/g, ' ').replaceAll('|', '/').trim()
  return text.length > MAX_REASON ? `${text.slice(0, MAX_REASON)}…` : text
}
