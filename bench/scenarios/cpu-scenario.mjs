import { load } from '../measurements/load.mjs'

/**
 * A scenario that measures the CPU time of a proxy under load, compared with that of the floor.
 * @param {object} description what is asked and how often; `per`: what the time is divided by, `event` or `request`;
 *   `unitsPerAnswer`: number of units per answer, default 1
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
