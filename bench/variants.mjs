/**
 * A version of Node, and a build of another revision: what may differ between two variants of one proxy.
 * @typedef {{ readonly version: string, readonly program: string }} Node
 * @typedef {{ readonly commit: string, readonly title: string, readonly folder: string }} Revision
 * @typedef {{ readonly nodes?: readonly Node[] | undefined, readonly revision?: Revision | undefined }} Variation
 */

/**
 * The ways in which proxies take part: each Node program on each of `nodes`, and each of ours from the working tree and from
 * `revision` too. Without any of these a proxy has one variant, with `node` and `build` undefined.
 * @template {object} Proxy
 * @param {readonly Proxy[]} proxies modules of `proxies/`: ours have `isOwn`, programs of another kind `isNodeProgram: false`
 * @param {Variation} variation
 * @returns {(Proxy & { node: Node | undefined, build: Revision | undefined })[]}
 */
export function variantsOf(proxies, { nodes = [], revision }) {
  return proxies.flatMap((proxy) => {
    const versions = nodes.length === 0 || proxy.isNodeProgram === false ? [undefined] : nodes
    const builds = revision !== undefined && proxy.isOwn ? [undefined, revision] : [undefined]
    return versions.flatMap((node) => builds.map((build) => ({ ...proxy, node, build })))
  })
}

/**
 * A suite that also compares every proxy with itself on the first of `nodes`, and with itself at `revision`, once with all
 * of its CPU and once with that of its main thread.
 * @template {object} Suite
 * @param {Suite} suite
 * @param {Variation} variation
 * @returns {Suite}
 */
export function withVariants(suite, { nodes = [], revision }) {
  const references = []
  if (nodes.length > 1)
    references.push({ key: 'node', node: nodes[0], comparison: 'ratio', column: `against Node ${nodes[0].version}` })
  if (revision !== undefined) {
    const of = { build: revision, isPaired: true }
    references.push({ ...of, key: 'revision', column: `against ${revision.title}` })
    references.push({
      ...of,
      key: 'revision-main-thread',
      column: `main thread against ${revision.title}`,
      metric: 'mainThreadMicroseconds',
      comparison: 'ratio',
    })
  }
  return { ...suite, referencesOf: (scenario) => [...suite.referencesOf(scenario), ...references] }
}

/** Returns the key of a result's comparison with a reference. */
export const keyOf = ({ key, name }) => key ?? name

/** How a value is compared with a reference: `ratio`, `difference` or `absolute`, which needs no other value. */
export function comparisonOf(scenario, reference) {
  if (reference.comparison !== undefined) return reference.comparison
  // A comparison with the same proxy at another revision is a ratio, even if the target is an absolute value.
  return reference.isPaired && scenario.comparison === 'absolute' ? 'ratio' : scenario.comparison
}

/**
 * Returns the variant that `own` is compared with: on the same version of Node, from the same build if it has one, unless
 * the reference says otherwise. Undefined if there is none or it is the variant itself.
 * @param node the Node whose results these are, also for programs that run on none
 */
export function referenceVariant(variants, reference, { own, node: ownNode }) {
  const { name = own.name, node = ownNode, build = own.build } = reference
  const isOnNode = (variant) => variant.node === node || variant.node === undefined
  const named = variants.filter((variant) => variant.name === name && isOnNode(variant))
  const exact = named.find((variant) => variant.build === build)
  // The floor and the peers are not builds of this project.
  const found =
    exact ?? (reference.build === undefined ? named.find((variant) => variant.build === undefined) : undefined)
  return found === own ? undefined : found
}
