import * as gateway from '../proxies/gateway.mjs'
import * as gatewayMcp from '../proxies/gateway-mcp.mjs'
import { scenario as mcpCall } from '../scenarios/mcp-call.mjs'
import { signOf, verdict } from '../verdict.mjs'

const overHttp = { ...gateway, title: 'signalbox, HTTP' }

export const suite = {
  name: 'mcp',
  heading: 'By MCP',
  intro: `The same chat by the HTTP API, and as a call of the tool \`chat_complete\` by streamable HTTP, revision 2026-07-28; both are
answered with plain JSON. One connection, one call after another.`,
  scenarios: [mcpCall],
  proxiesOf: () => [overHttp, gatewayMcp],
  referencesOf: () => [{ name: overHttp.name, column: 'against the HTTP API' }],
  verdictOf: (scenario, { proxy, comparisons }) =>
    proxy === overHttp.name
      ? ''
      : verdict(comparisons[overHttp.name].median, { target: scenario.target, sign: signOf(scenario) }),
}
