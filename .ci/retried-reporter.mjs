// A vitest reporter: appends the tests that passed only at another attempt to the file of the variable RETRIED_TESTS, with the first
// line of what the first attempt said.
import { appendFileSync } from 'node:fs'

export default class RetriedReporter {
  onTestCaseResult(test) {
    if (!test.diagnostic()?.flaky) return
    const [fault] = test.result().errors ?? []
    const said = String(fault?.message ?? 'no message').split('\n', 1)[0]
    appendFileSync(process.env.RETRIED_TESTS, `  ${test.module.relativeModuleId} > ${test.fullName}: ${said}\n`)
  }
}
