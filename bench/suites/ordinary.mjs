import { FLOOR, proxiesOf } from '../proxies/proxies.mjs'
import { SCENARIOS } from '../scenarios/scenarios.mjs'
import { signOf, targetOf, verdict } from '../verdict.mjs'

export const suite = {
  name: 'ordinary',
  heading: 'Against a bare Node proxy',
  intro: `A mock vendor answers at once; each proxy runs in a process of its own, and they take turns within every round, in random order.
The floor is Node's HTTP server with undici's \`dispatch\`, bytes through; "reading both bodies" adds what no gateway can leave
out: it hashes the key, parses request and answer, and sends the headers of limits and cost. signalbox has everything on: keys, validation, limits,
in-memory billing, usage read from every answer. CPU is user and system time of the proxy's process; its main
thread is read from /proc in steps of 10 ms, and helper threads, which collect garbage and compile, are the rest. Columns are medians of the
rounds; "against the floor" is the median of the comparisons within each round, with the least and the greatest in parentheses.
Every answer is checked for status and size, one of each kind for its content, and the account must have been charged for exactly
the answers given. On a shared or virtual machine trust the ratios of CPU time; requests per second and p99 are mostly the machine's.
\`bench/first-byte-trace.mjs\` shows where the time to the first byte is spent.`,
  scenarios: SCENARIOS,
  proxiesOf,
  referencesOf: () => [{ name: FLOOR.name, column: 'against the floor' }],
  verdictOf: (scenario, result) =>
    result.proxy.startsWith(FLOOR.name)
      ? ''
      : verdict(result.comparisons[FLOOR.name].median, { ...targetOf(scenario, result), sign: signOf(scenario) }),
}
