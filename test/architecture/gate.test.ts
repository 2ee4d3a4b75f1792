import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

const script = join(import.meta.dirname, '../../.ci/count-tests.mjs')
const folder = mkdtempSync(join(tmpdir(), 'signalbox-gate-'))

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Counts of the gate for a report with one file per list of test statuses. */
function counted(files: { status: string; tests: string[] }[] | undefined, exitStatus: number): string {
  const path = join(folder, files === undefined ? 'missing.json' : 'report.json')
  const testResults = files?.map(({ status, tests }) => ({
    status,
    assertionResults: tests.map((testStatus, index) => ({ status: testStatus, fullName: `test ${index}` })),
  }))
  if (testResults !== undefined) writeFileSync(path, JSON.stringify({ testResults }))
  const args = [script, path, String(exitStatus)]
  return execFileSync(process.execPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
}

describe('the gate', () => {
  test('counts tests that passed', () => {
    expect(counted([{ status: 'passed', tests: ['passed', 'passed'] }], 0)).toBe('2 0')
  })

  test.each(['failed', 'pending', 'skipped', 'todo'])('counts a test that is %s as failed', (status) => {
    expect(counted([{ status: 'passed', tests: ['passed', status] }], 0)).toBe('1 1')
  })

  test('counts a file that cannot be loaded as one failure', () => {
    const files = [
      { status: 'passed', tests: ['passed'] },
      { status: 'failed', tests: [] },
    ]

    expect(counted(files, 1)).toBe('1 1')
  })

  test('fails a run that failed although no test did, such as for an unhandled rejection', () => {
    expect(counted([{ status: 'passed', tests: ['passed'] }], 1)).toBe('1 1')
  })

  test('fails a run that never came to its tests', () => {
    expect(counted(undefined, 1)).toBe('0 1')
    expect(counted([], 0)).toBe('0 1')
  })
})
