import { drawChart } from './chart.mjs'
import { openLab } from './lab.mjs'
import { machine } from './machine.mjs'
import { findNodes } from './nodes.mjs'
import { readOptions, USAGE } from './options.mjs'
import { profileScenario } from './profile.mjs'
import { reportOf } from './report.mjs'
import { writeNumbers } from './results-data.mjs'
import { writeSection } from './results-file.mjs'
import { buildRevision } from './revision.mjs'
import { runScenario } from './run-scenario.mjs'
import { suite as peers } from './suites/peers.mjs'
import { withVariants } from './variants.mjs'

const given = process.argv.slice(2)
const asked = readOptions(given)
// Exits explicitly, so that started processes are ended too.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
if (asked.isHelp) console.log(USAGE)
else await run()

async function run() {
  const nodes = findNodes(asked.nodeMajors)
  const revision = asked.compareWith === undefined ? undefined : buildRevision(asked.compareWith)
  const options = { ...asked, nodes, revision }
  const suites = options.suites.map((suite) => withVariants(suite, { nodes, revision }))
  for (const suite of suites) await suite.prepare?.()
  const lab = await openLab()
  try {
    for (const suite of suites) {
      if (options.profileFolder === undefined) await compare(lab, suite, options)
      else for (const scenario of suite.scenarios) await profileScenario({ lab, suite, scenario, options })
    }
  } finally {
    await lab.close()
    for (const suite of suites) await suite.finish?.()
  }
}

async function compare(lab, suite, options) {
  const outcomes = []
  for (const scenario of suite.scenarios) {
    process.stderr.write(`${scenario.title} `)
    outcomes.push(await runScenario({ lab, suite, scenario, options, onRound: () => process.stderr.write('.') }))
    process.stderr.write('\n')
  }
  const versions = options.nodes.map(({ version }) => version)
  const run = {
    command: ['npm run bench --', ...given].join(' '),
    machine: machine(versions),
    date: new Date().toISOString().slice(0, 10),
  }
  const table = reportOf(suite, outcomes, versions)
  if (options.isJson) {
    const numbers = { ...run, nodes: versions, revision: options.revision?.commit, outcomes: outcomes.map(plain) }
    console.log(JSON.stringify(numbers, undefined, 2))
  } else console.log(`\n${suite.heading}\n\n${run.machine}\n\n${table}`)
  if (options.isWriting) await write(suite, outcomes, { ...run, nodes: versions, table })
}

async function write(suite, outcomes, { table, nodes, command, machine, date }) {
  await writeSection({ suite, table, command, machine, date })
  if (suite.name !== peers.name) return
  await writeNumbers({ outcomes, nodes, command, machine, date })
  await drawChart()
}

function plain({ scenario: { name, unit, headline, comparison, target, goal, targets }, results }) {
  return { scenario: name, unit, headline, comparison, target, goal, targets, results }
}
