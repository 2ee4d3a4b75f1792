// A vitest reporter: appends the tests that passed only at another attempt to the file of the variable RETRIED_TESTS.
import { appendFileSync } from 'node:fs'

export default class RetriedReporter {
  onTestCaseResult(test) {
    if (test.diagnostic()?.flaky)
      appendFileSync(process.env.RETRIED_TESTS, `  ${test.module.relativeModuleId} > ${test.fullName}\n`)
  }
}
