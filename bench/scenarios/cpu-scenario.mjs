import { load } from '../measurements/load.mjs'

/**
 * A scenario that measures the CPU time of a proxy under load, held against the floor's.
 * @param {object} description what is asked and how often; `per`: what the time is divided by, `event` or `request`;
 *   `unitsPerAnswer`: how many of those an answer is, default 1
 */
export function cpuScenario({ per, ...description }) {
  return {
    unit: `CPU µs/${per}`,
    measurement: load,
    unitsPerAnswer: 1,
    headline: 'cpuMicroseconds',
    comparison: 'ratio',
    ...description,
  }
}
