const SIGNS = { ratio: '×', difference: 'ms more' }

/** Sign after a compared value; for an absolute value, the unit of the headline, such as `kB` of `kB/stream`. */
export const signOf = ({ comparison, unit }) => SIGNS[comparison] ?? unit.split('/')[0]

/**
 * Returns the target of a proxy: the `targets` of a scenario by proxy and major version of Node, if it has any, else its
 * `target` and `goal`. A result without a Node version is of this one.
 */
export function targetOf({ target, goal, targets }, { proxy, node = process.versions.node }) {
  return targets?.[proxy]?.[Number.parseInt(node, 10)] ?? { target, goal }
}

/** Describes a target, a stricter goal, and whether they were reached. */
export function verdict(value, { target, goal = target, sign }) {
  const outcome = value <= target ? 'pass' : 'FAIL'
  const goalText = goal === target ? '' : `; goal ${goal}: ${value <= goal ? 'reached' : 'not yet'}`
  return `≤ ${target} ${sign}: ${outcome}${goalText}`
}

/** Describes a target that must be reached or exceeded, and whether it was. */
export function verdictAtLeast(value, { target, sign }) {
  return `≥ ${target.toLocaleString('en-US')} ${sign}: ${value >= target ? 'pass' : 'FAIL'}`
}
