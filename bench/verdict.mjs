const SIGNS = { ratio: '×', difference: 'ms more' }

/** What stands behind a compared value; an absolute one has the unit of the headline, such as `kB` of `kB/stream`. */
export const signOf = ({ comparison, unit }) => SIGNS[comparison] ?? unit.split('/')[0]

/** A target in words, whether it was reached, and the same for a stricter goal. */
export function verdict(value, { target, goal = target, sign }) {
  const outcome = value <= target ? 'pass' : 'FAIL'
  const goalText = goal === target ? '' : `; goal ${goal}: ${value <= goal ? 'reached' : 'not yet'}`
  return `≤ ${target} ${sign}: ${outcome}${goalText}`
}
