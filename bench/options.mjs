import { parseArgs } from 'node:util'
import { readMajors } from './nodes.mjs'
import { SUITES } from './suites/suites.mjs'

const [ordinary, ...others] = SUITES
const SCENARIO_NAMES = [...new Set(SUITES.flatMap(({ scenarios }) => scenarios.map(({ name }) => name)))]

export const USAGE = `npm run bench -- [options]
  --peers          compare with other proxies and gateways; installs those that are npm packages into bench/peers,
                   takes nginx and litellm where they are there
  --mounts         compare the ways to mount the gateway
  --cluster        compare one worker process with two
  --mcp            compare an MCP tool with the same call by HTTP
  --postgres       compare money in PostgreSQL, of one account and of 1,000, in one process and in four, under full load and at
                   fixed rates; starts servers, and measures pgbench and the disk too
  --node <list>    run the proxies under each of these versions of Node, such as 20,24, and print them side by side; those
                   that are not here are installed from npm into bench/.cache
  --compare <rev>  build that revision too, and let both builds take turns: what the change is worth
  --batches <n>    start the proxies afresh that often (default 1, with --compare 5)
  --rounds <n>     rounds of each batch; proxies take turns in random order (default 5, with --compare 3)
  --seconds <n>    seconds of load for each turn (default 4, with --compare 2)
  --only <name>    only this scenario, can be given several times: ${SCENARIO_NAMES.join(', ')}
  --quick          1 batch of 2 rounds of 1 second
  --json           print the numbers as JSON
  --write          write the section in bench/RESULTS.md; with --peers the chart too
  --profile <dir>  one turn of each proxy under the profiler; prints where the time goes, keeps *.cpuprofile in <dir>

Without --peers, --mounts, --cluster, --mcp and --postgres the gateway is compared with a bare Node proxy.`

/**
 * Reads the command line.
 * @param {readonly string[]} given
 * @returns {{
 *   suites: readonly { name: string, scenarios: readonly { name: string }[] }[], nodeMajors: readonly number[],
 *   compareWith: string | undefined, batches: number, rounds: number, seconds: number, isJson: boolean, isWriting: boolean,
 *   profileFolder: string | undefined, isHelp: boolean
 * }} `suites`: suites to run, each with only the requested `scenarios`
 *   `nodeMajors`: versions of Node, empty for our own; `compareWith`: a revision, or undefined
 * @throws TypeError for an unknown option or an invalid value
 */
export function readOptions(given) {
  const { values } = parseArgs({
    args: given,
    options: {
      ...Object.fromEntries(others.map(({ name }) => [name, { type: 'boolean' }])),
      node: { type: 'string' },
      compare: { type: 'string' },
      batches: { type: 'string' },
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
  if (values.compare !== undefined && values.write) throw new TypeError('--compare is printed, not written')
  const { batches, rounds, seconds } = extentOf(values)
  return {
    suites,
    nodeMajors: values.node === undefined ? [] : readMajors(values.node),
    compareWith: values.compare,
    batches: whole('batches', values.batches ?? batches),
    rounds: whole('rounds', values.rounds ?? rounds),
    seconds: positive('seconds', values.seconds ?? seconds),
    isJson: values.json === true,
    isWriting: values.write === true,
    profileFolder: values.profile,
    isHelp: values.help === true,
  }
}

/** Default length of a run. A comparison of builds has short turns, so that pairs are close. */
function extentOf({ quick, compare }) {
  if (quick) return { batches: 1, rounds: 2, seconds: 1 }
  return compare === undefined ? { batches: 1, rounds: 5, seconds: 4 } : { batches: 5, rounds: 3, seconds: 2 }
}

function whole(name, text) {
  const value = positive(name, text)
  if (!Number.isInteger(value)) throw new TypeError(`--${name} must be a whole number`)
  return value
}

function positive(name, text) {
  const value = Number(text)
  if (!(value > 0)) throw new TypeError(`--${name} must be a number above zero`)
  return value
}
