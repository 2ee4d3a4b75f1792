import { drawChart } from './chart.mjs'
import { openLab } from './lab.mjs'
import { machine } from './machine.mjs'
import { readOptions, USAGE } from './options.mjs'
import { profileScenario } from './profile.mjs'
import { markdownOf, tableOf } from './report.mjs'
import { writeNumbers } from './results-data.mjs'
import { writeSection } from './results-file.mjs'
import { runScenario } from './run-scenario.mjs'
import { suite as peers } from './suites/peers.mjs'

const given = process.argv.slice(2)
const options = readOptions(given)
// An exit of our own, so that what was started is ended too.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
if (options.isHelp) console.log(USAGE)
else await run()

async function run() {
  for (const suite of options.suites) await suite.prepare?.()
  const lab = await openLab()
  try {
    for (const suite of options.suites) {
      if (options.profileFolder === undefined) await compare(lab, suite)
      else for (const scenario of suite.scenarios) await profileScenario({ lab, suite, scenario, options })
    }
  } finally {
    await lab.close()
  }
}

async function compare(lab, suite) {
  const outcomes = []
  for (const scenario of suite.scenarios) {
    process.stderr.write(`${scenario.title} `)
    outcomes.push(await runScenario({ lab, suite, scenario, options, onRound: () => process.stderr.write('.') }))
    process.stderr.write('\n')
  }
  const run = {
    command: ['npm run bench --', ...given].join(' '),
    machine: machine(),
    date: new Date().toISOString().slice(0, 10),
  }
  const table = markdownOf(tableOf(suite, outcomes))
  if (options.isJson) console.log(JSON.stringify({ ...run, outcomes: outcomes.map(plain) }, undefined, 2))
  else console.log(`\n${suite.heading}\n\n${run.machine}\n\n${table}`)
  if (options.isWriting) await write(suite, outcomes, { ...run, table })
}

async function write(suite, outcomes, { table, command, machine, date }) {
  await writeSection({ suite, table, command, machine, date })
  if (suite.name !== peers.name) return
  await writeNumbers({ outcomes, command, machine, date })
  await drawChart()
}

function plain({ scenario: { name, unit, headline, comparison, target, goal }, results }) {
  return { scenario: name, unit, headline, comparison, target, goal, results }
}
