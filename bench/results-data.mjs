import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'

const FILE = new URL('./results.json', import.meta.url)

/**
 * Writes the numbers of the comparison with peers for the chart: `bench/results.json`. `nodes` are the versions of Node that it
 * ran on, if any were requested.
 */
export async function writeNumbers({ outcomes, nodes, command, machine, date }) {
  const numbers = {
    command,
    machine,
    date,
    ...(nodes.length === 0 ? {} : { nodes }),
    scenarios: outcomes.map(scenarioNumbers),
  }
  await writeFile(FILE, `${JSON.stringify(numbers, undefined, 2)}\n`)
}

/** Reads the file of `writeNumbers`. @throws Error if it does not exist */
export async function readNumbers() {
  if (!existsSync(FILE)) throw new Error('there are no numbers yet: npm run bench -- --peers --write')
  return JSON.parse(await readFile(FILE, 'utf8'))
}

/** The headline of each proxy on each version of Node; undefined if it was not measured. */
export function scenarioNumbers({ scenario, results }) {
  const { name, title, unit, headline } = scenario
  // Proxies that do not run on Node were measured once, and are in the results of each version.
  const isFirst = (result) => results.find(({ proxy }) => proxy === result.proxy) === result
  const distinct = results.filter((result) => result.isNodeProgram !== false || isFirst(result))
  const values = distinct.map((result) => ({
    name: result.proxy,
    title: result.title,
    ...(result.node === undefined || result.isNodeProgram === false ? {} : { node: result.node }),
    ...(result.reason === undefined ? { value: result.medians[headline] } : { reason: result.reason }),
  }))
  return { name, title, unit, values }
}
