import { systemClock } from '../../../src/core/clock.ts'
import { timeOrderedIds } from '../../../src/core/ids.ts'
import { silentLogger } from '../../../src/core/logger.ts'
import { McpEndpoint } from '../../../src/mcp/mcp-endpoint.ts'
import type { StartedGateway } from '../../support/start-gateway.ts'
import { fixtureServer } from './fixture-server.ts'

/** Serves the scenarios' own server through everything but the gateway's tools. */
export function fixtureEndpoint({ gateway }: StartedGateway): McpEndpoint {
  return new McpEndpoint({
    gateway,
    serverFor: fixtureServer,
    bodyLimitBytes: 1_000_000,
    logger: silentLogger,
    clock: systemClock,
    ids: timeOrderedIds,
    rules: {},
  })
}
