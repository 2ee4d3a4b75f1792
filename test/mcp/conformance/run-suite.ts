import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suiteNode } from './suite-node.ts'

const ROOT = join(import.meta.dirname, '../../..')

/** Result of one requirement. */
interface Check {
  readonly id: string
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO'
  readonly errorMessage?: string
}

/** Results of a server by scenario: the failed checks, each with its reason. */
export type SuiteReport = ReadonlyMap<string, readonly string[]>

/** Runs scenarios of the official conformance suite against a server, each in a process of its own; all of them when none is named. */
export async function runSuite(url: string, scenarios: readonly string[] = []): Promise<SuiteReport> {
  const folder = await mkdtemp(join(tmpdir(), 'conformance-'))
  try {
    const selections = scenarios.length === 0 ? [['--suite', 'all']] : scenarios.map((name) => ['--scenario', name])
    const node = await suiteNode()
    for (const selection of selections) await run(node, ['server', '--url', url, ...selection, '-o', folder])
    return await readReport(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs the suite. It exits with status 1 if a scenario failed, and its report contains the details. Any other exit rejects. */
function run(node: string, args: readonly string[]): Promise<void> {
  const suite = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
  return new Promise((resolve, reject) => {
    execFile(node, [suite, ...args], { cwd: ROOT, timeout: 120_000 }, (error, stdout, stderr) => {
      if (error === null || error.code === 1) resolve()
      else
        reject(new Error(`the conformance suite broke off: ${error.message}\n${stdout}\n${stderr}`, { cause: error }))
    })
  })
}

async function readReport(folder: string): Promise<SuiteReport> {
  const report = new Map<string, readonly string[]>()
  for (const name of await readdir(folder)) {
    // A folder is named `server-<scenario>-<time>`.
    const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT.*$/.exec(name)?.[1] ?? name
    const checks = JSON.parse(await readFile(join(folder, name, 'checks.json'), 'utf8')) as Check[]
    const failed = checks.filter(({ status }) => status === 'FAILURE')
    report.set(
      scenario,
      failed.map(({ id, errorMessage }) => `${id}: ${errorMessage ?? ''}`),
    )
  }
  return report
}
