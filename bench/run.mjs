import { openLab } from './lab.mjs'
import { readOptions, USAGE } from './options.mjs'
import { profileScenario } from './profile.mjs'
import { markdownTable, rowsOf } from './report.mjs'
import { machine, writeResults } from './results-file.mjs'
import { runScenario } from './run-scenario.mjs'

const given = process.argv.slice(2)
const options = readOptions(given)
if (options.isHelp) console.log(USAGE)
else await run()

async function run() {
  const lab = await openLab()
  try {
    if (options.profileFolder === undefined) await compare(lab)
    else for (const scenario of options.scenarios) await profileScenario({ lab, scenario, options })
  } finally {
    await lab.close()
  }
}

async function compare(lab) {
  const outcomes = []
  for (const scenario of options.scenarios) {
    process.stderr.write(`${scenario.title} `)
    outcomes.push(await runScenario({ lab, scenario, options, onRound: () => process.stderr.write('.') }))
    process.stderr.write('\n')
  }
  const rows = outcomes.flatMap(rowsOf)
  if (options.isJson) console.log(JSON.stringify({ machine: machine(), outcomes: outcomes.map(plain) }, undefined, 2))
  else console.log(`\n${machine()}\n\n${markdownTable(rows)}`)
  if (options.isWriting) await writeResults({ rows, command: ['npm run bench --', ...given].join(' ') })
}

function plain({ scenario: { name, unit, headline, comparison, target, goal }, results }) {
  return { scenario: name, unit, headline, comparison, target, goal, results }
}
