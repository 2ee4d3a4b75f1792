// Prints `<passed> <failed>` for a vitest JSON report. Usage: node count-tests.mjs <report> <exit status of the run>
// Failed are: failed tests, tests that did not run, files that could not be loaded, and a run that failed otherwise.
import { existsSync, readFileSync } from 'node:fs'

const [, , reportPath, exitStatus] = process.argv
const files = existsSync(reportPath) ? JSON.parse(readFileSync(reportPath, 'utf8')).testResults : []
const tests = files.flatMap((file) => file.assertionResults)
const passed = tests.filter((test) => test.status === 'passed').length
const unloaded = files.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length
const failed = tests.length - passed + unloaded

for (const test of tests) {
  if (test.status !== 'passed' && test.status !== 'failed') console.error(`not run (${test.status}): ${test.fullName}`)
}
// No tests at all, a failed build or an unhandled rejection: nothing that a test reports, but no success either.
const otherFailure = failed === 0 && (exitStatus !== '0' || passed === 0) ? 1 : 0
console.log(passed, failed + otherFailure)
