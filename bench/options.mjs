import { parseArgs } from 'node:util'
import { SUITES } from './suites/suites.mjs'

const [ordinary, ...others] = SUITES
const SCENARIO_NAMES = [...new Set(SUITES.flatMap(({ scenarios }) => scenarios.map(({ name }) => name)))]

export const USAGE = `npm run bench -- [options]
  --peers          compare with other proxies and gateways; installs those that are npm packages into bench/peers,
                   takes nginx and litellm where they are there
  --mounts         compare the ways to mount the gateway
  --cluster        compare one worker process with two
  --mcp            compare an MCP tool with the same call by HTTP
  --rounds <n>     rounds of each scenario; proxies take turns in random order (default 5)
  --seconds <n>    seconds of load for each turn (default 4)
  --only <name>    only this scenario, can be given several times: ${SCENARIO_NAMES.join(', ')}
  --quick          2 rounds of 1 second
  --json           print the numbers as JSON
  --write          write the section in bench/RESULTS.md; with --peers the chart too
  --profile <dir>  one turn of each proxy under the profiler; prints where the time goes, keeps *.cpuprofile in <dir>

Without --peers, --mounts, --cluster and --mcp the gateway is compared with a bare Node proxy.`

/**
 * Reads the command line.
 * @returns `suites`: what to run, each with its `scenarios` narrowed to those that are wanted
 * @throws TypeError for an option that does not exist or has a bad value
 */
export function readOptions(given) {
  const { values } = parseArgs({
    args: given,
    options: {
      ...Object.fromEntries(others.map(({ name }) => [name, { type: 'boolean' }])),
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
  const only = values.only ?? SCENARIO_NAMES
  const unknown = only.find((wanted) => !SCENARIO_NAMES.includes(wanted))
  if (unknown !== undefined) throw new TypeError(`there is no scenario ${unknown}`)
  const wanted = others.filter(({ name }) => values[name] === true)
  const suites = (wanted.length === 0 ? [ordinary] : wanted)
    .map((suite) => ({ ...suite, scenarios: suite.scenarios.filter(({ name }) => only.includes(name)) }))
    .filter(({ scenarios }) => scenarios.length > 0)
  if (suites.length === 0) throw new TypeError(`none of ${only.join(', ')} is measured there`)
  return {
    suites,
    rounds: positive('rounds', values.rounds ?? (values.quick ? '2' : '5')),
    seconds: positive('seconds', values.seconds ?? (values.quick ? '1' : '4')),
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
