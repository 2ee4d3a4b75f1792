import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeHandler } from '../../../src/adapters/node.ts'
import { systemClock } from '../../../src/core/clock.ts'
import type { ExchangeHandler } from '../../../src/core/exchange.ts'
import { timeOrderedIds } from '../../../src/core/ids.ts'
import { silentLogger } from '../../../src/core/logger.ts'
import { McpEndpoint } from '../../../src/mcp/mcp-endpoint.ts'
import { mcpHandler } from '../../../src/mcp/mcp-handler.ts'
import { listen, MOUNTS, type Mounted } from '../../adapters/support/mounts.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { fixtureServer } from './fixture-server.ts'
import { runSuite, type SuiteReport } from './run-suite.ts'

/** Scenarios that every server can be asked, whatever its tools are. */
const GENERIC = [
  'server-initialize',
  'ping',
  'tools-list',
  'resources-list',
  'server-sse-multiple-streams',
  'dns-rebinding-protection',
]

/**
 * Scenarios that do not pass, each with the reason. Most need a session that lives in the process: requests from the server
 * to the client, log levels and subscriptions are kept there. The gateway's own server uses none of them.
 */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'logging-set-level': 'a level is kept in a session',
  'tools-call-with-logging': 'a level is kept in a session',
  'tools-call-sampling': 'the answer of the client comes in an exchange of its own',
  'tools-call-elicitation': 'the answer of the client comes in an exchange of its own',
  'elicitation-sep1034-defaults': 'the answer of the client comes in an exchange of its own',
  'elicitation-sep1330-enums': 'the answer of the client comes in an exchange of its own',
  'resources-subscribe': 'subscriptions are kept in a session',
  'resources-unsubscribe': 'subscriptions are kept in a session',
}

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
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

/** Serves the scenarios' own server through everything but the gateway's tools. */
function fixture(): ExchangeHandler {
  return withKey(
    new McpEndpoint({
      gateway: started.gateway,
      serverFor: fixtureServer,
      bodyLimitBytes: 1_000_000,
      logger: silentLogger,
      clock: systemClock,
      ids: timeOrderedIds,
      rules: {},
    }),
  )
}

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
    mounted = await mount(fixture())
    report = await runSuite(`http://localhost:${mounted.port}/ai/mcp`)
  }, 120_000)
  afterAll(() => mounted.close())

  test('passes every scenario of the conformance suite but the exceptions', () => {
    const passed = [...report].filter(([, failed]) => failed.length === 0).map(([scenario]) => scenario)
    const failed = [...report].filter(([scenario, faults]) => faults.length > 0 && !(scenario in EXCEPTIONS))

    expect(failed).toEqual([])
    expect(passed.length).toBeGreaterThan(20)
  })

  test('fails all exceptions, so that the list does not outlive its reasons', () => {
    const failed = [...report].filter(([, faults]) => faults.length > 0).map(([scenario]) => scenario)

    expect(failed.sort()).toEqual(Object.keys(EXCEPTIONS).sort())
  })
})
