import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeHandler } from '../../../src/adapters/node.ts'
import type { ExchangeHandler } from '../../../src/core/exchange.ts'
import { mcpHandler } from '../../../src/mcp/index.ts'
import { MOUNTS, type Mounted } from '../../adapters/support/mounts.ts'
import { listen } from '../../support/listen.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { fixtureEndpoint } from './fixture-endpoint.ts'
import { runSuite, type SuiteReport } from './run-suite.ts'
import { suiteNode } from './suite-node.ts'

/** Scenarios that apply to every server, whatever its tools are. */
const GENERIC = [
  'server-initialize',
  'ping',
  'tools-list',
  'resources-list',
  'server-sse-multiple-streams',
  'dns-rebinding-protection',
]

/**
 * Scenarios that do not pass. In each the server asks the client something in the midst of a call. The client answers in an
 * exchange of its own, which only a session that lives in the process could lead back to the call. The gateway's own
 * server asks clients nothing.
 */
const EXCEPTIONS = [
  'tools-call-sampling',
  'tools-call-elicitation',
  'elicitation-sep1034-defaults',
  'elicitation-sep1330-enums',
]

let started: StartedGateway

beforeAll(async () => {
  await suiteNode()
  started = await startGateway()
}, 180_000)
afterAll(() => started.close())

/** The suite cannot send a key, so the test does it in its place. */
function withKey(handler: ExchangeHandler): ExchangeHandler {
  return {
    handle(request, sink) {
      const { method, path, query } = request
      const header = (name: string) => (name === 'authorization' ? `Bearer ${TEST_KEY}` : request.header(name))
      handler.handle({ method, path, query, header, readBody: (...args) => request.readBody(...args) }, sink)
    },
  }
}

test('the suite runs under Node 22 of the npm package on Linux for x64, and under no older one elsewhere', async () => {
  const { stdout } = await promisify(execFile)(await suiteNode(), ['--version'])

  const isPackaged = process.platform === 'linux' && process.arch === 'x64'
  expect(stdout).toMatch(isPackaged ? /^v22\./ : /^v(2[2-9]|[3-9]\d)\./)
})

test('the server of the gateway passes the generic scenarios of the conformance suite', {
  timeout: 120_000,
}, async () => {
  const mounted = await listen(nodeHandler(withKey(mcpHandler(started.gateway))))
  const report = await runSuite(`http://localhost:${mounted.port}/mcp`, GENERIC)
  await mounted.close()

  expect([...report].sort()).toEqual(GENERIC.map((name) => [name, []]).sort())
})

describe.each(Object.entries(MOUNTS))('a fixture server through %s', (_name, mount) => {
  let mounted: Mounted
  let report: SuiteReport

  beforeAll(async () => {
    mounted = await mount(withKey(fixtureEndpoint(started)))
    report = await runSuite(`http://localhost:${mounted.port}/ai/mcp`)
  }, 120_000)
  afterAll(() => mounted.close())

  test('passes every scenario of the conformance suite but the exceptions', () => {
    const passed = [...report].filter(([, failed]) => failed.length === 0).map(([scenario]) => scenario)
    const failed = [...report].filter(([scenario, faults]) => faults.length > 0 && !EXCEPTIONS.includes(scenario))

    expect(failed).toEqual([])
    expect(passed.length).toBeGreaterThan(24)
  })

  test('fails all exceptions, so that the list does not outlive its reasons', () => {
    const failed = [...report].filter(([, faults]) => faults.length > 0).map(([scenario]) => scenario)

    expect(failed.sort()).toEqual([...EXCEPTIONS].sort())
  })
})
