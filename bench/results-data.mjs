import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'

const FILE = new URL('./results.json', import.meta.url)

/** Writes the numbers of the comparison with peers for the chart: `bench/results.json`. */
export async function writeNumbers({ outcomes, command, machine, date }) {
  const numbers = { command, machine, date, scenarios: outcomes.map(scenarioNumbers) }
  await writeFile(FILE, `${JSON.stringify(numbers, undefined, 2)}\n`)
}

/** Reads what `writeNumbers` has written. @throws Error when there is nothing yet */
export async function readNumbers() {
  if (!existsSync(FILE)) throw new Error('there are no numbers yet: npm run bench -- --peers --write')
  return JSON.parse(await readFile(FILE, 'utf8'))
}

/** The headline of each proxy; one that was not measured has no value. */
export function scenarioNumbers({ scenario, results }) {
  const { name, title, unit, headline } = scenario
  const values = results.map((result) => ({
    name: result.proxy,
    title: result.title,
    ...(result.reason === undefined ? { value: result.medians[headline] } : { reason: result.reason }),
  }))
  return { name, title, unit, values }
}
