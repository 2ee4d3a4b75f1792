import { parseArgs } from 'node:util'
import { SCENARIOS } from './scenarios/scenarios.mjs'

export const USAGE = `npm run bench -- [options]
  --rounds <n>     rounds of each scenario; proxies take turns in random order (default 5)
  --seconds <n>    seconds of load for each turn (default 4)
  --only <name>    only this scenario, can be given several times: ${SCENARIOS.map(({ name }) => name).join(', ')}
  --quick          2 rounds of 1 second
  --json           print the numbers as JSON
  --write          write bench/RESULTS.md
  --profile <dir>  one turn of each proxy under the profiler; prints where the time goes, keeps *.cpuprofile in <dir>`

/**
 * Reads the command line.
 * @throws TypeError for an option that does not exist or has a bad value
 */
export function readOptions(given) {
  const { values } = parseArgs({
    args: given,
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string', multiple: true },
      quick: { type: 'boolean' },
      json: { type: 'boolean' },
      write: { type: 'boolean' },
      profile: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  const only = values.only ?? SCENARIOS.map(({ name }) => name)
  const unknown = only.find((wanted) => !SCENARIOS.some(({ name }) => name === wanted))
  if (unknown !== undefined) throw new TypeError(`there is no scenario ${unknown}`)
  return {
    rounds: positive('rounds', values.rounds ?? (values.quick ? '2' : '5')),
    seconds: positive('seconds', values.seconds ?? (values.quick ? '1' : '4')),
    scenarios: SCENARIOS.filter(({ name }) => only.includes(name)),
    isJson: values.json === true,
    isWriting: values.write === true,
    profileFolder: values.profile,
    isHelp: values.help === true,
  }
}

function positive(name, text) {
  const value = Number(text)
  if (!(value > 0)) throw new TypeError(`--${name} must be a number above zero`)
  return value
}
