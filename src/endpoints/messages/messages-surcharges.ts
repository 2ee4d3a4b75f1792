import { SAMPLINGS_WITH_TOOLS } from '../../catalog/prices/plausible-usage.ts'
import type { BillingFields } from '../../catalog/prices/prices.ts'
import { isJsonObject } from '../../core/json.ts'
import { ORDINARY_TIER } from '../../core/usage.ts'
import { requestTools, toolPaths } from './request-tools.ts'

/** Price fields of requests that the vendor charges more for than the token prices of its ordinary price list. */
export const MESSAGES_SURCHARGES = ['service_tier', 'speed', 'inference_geo', 'web_search', 'code_execution'] as const

const NO_FIELDS: BillingFields = {}

/** Values of `speed` at the ordinary price. */
const ORDINARY_SPEEDS: ReadonlySet<unknown> = new Set([undefined, null, 'standard'])
const ORDINARY_REGIONS: ReadonlySet<unknown> = new Set([undefined, null, 'global', 'not_available'])

/**
 * Returns the surcharges of a Messages request: the vendor charges for searches and container time, and more per token
 * for speed and for a region (Anthropic, Messages reference and "Pricing").
 */
export function messagesSurcharges(request: Readonly<Record<string, unknown>>): BillingFields {
  const { service_tier, speed, inference_geo } = request
  const tools = requestTools(request)
  const isFast = !ORDINARY_SPEEDS.has(speed)
  const isRegional = !ORDINARY_REGIONS.has(inference_geo)
  const searches = hasServerTool(tools, 'web_search_')
  const runsCode = hasServerTool(tools, 'code_execution_')
  const isTierOpen = service_tier !== 'standard_only'
  if (isTierOpen && !isFast && !isRegional && !searches && !runsCode) return NO_FIELDS
  return {
    ...(isTierOpen ? {} : { service_tier: ORDINARY_TIER }),
    ...(isFast ? { speed: String(speed) } : {}),
    ...(isRegional ? { inference_geo: String(inference_geo) } : {}),
    ...(searches ? { web_search: 'true' } : {}),
    ...(runsCode ? { code_execution: 'true' } : {}),
  }
}

/** Number of searches that the hold covers if a request sets no limit. */
const UNBOUNDED_SEARCHES = 10

/** Returns the number of searches that the hold covers: the tools' limits. `undefined` if the request cannot search. */
export function messagesSearches(request: Readonly<Record<string, unknown>>): number | undefined {
  const tools = requestTools(request)
  if (!hasServerTool(tools, 'web_search_')) return undefined
  let searches = 0
  for (const tool of tools) {
    if (!isServerTool(tool, 'web_search_')) continue
    const { max_uses: allowed } = tool
    searches += Number.isSafeInteger(allowed) && (allowed as number) > 0 ? (allowed as number) : UNBOUNDED_SEARCHES
  }
  return searches
}

/** Tools that let the model read and write again within the call. */
const SERVER_TOOLS = [
  'web_search_',
  'web_fetch_',
  'code_execution_',
  'tool_search_',
  'mcp_toolset',
  'advisor_',
] as const

/** Returns an upper bound of the samplings of a request: one after each tool round at the vendor or on other servers. */
export function messagesSamplings(request: Readonly<Record<string, unknown>>): number {
  const tools = requestTools(request)
  return SERVER_TOOLS.some((prefix) => hasServerTool(tools, prefix))
    ? Math.max(SAMPLINGS_WITH_TOOLS, (messagesSearches(request) ?? 0) + 1)
    : 1
}

/** Returns the path at which a request sets a price field, or `undefined` if it is the member of the same name. */
export function messagesFieldParam(field: string, request: Readonly<Record<string, unknown>>): string | undefined {
  if (field !== 'web_search' && field !== 'code_execution') return undefined
  const place = requestTools(request).findIndex((tool) => isServerTool(tool, `${field}_`))
  return place === -1 ? undefined : `${toolPaths(request)(place)}.type`
}

function hasServerTool(tools: readonly unknown[], prefix: string): boolean {
  return tools.some((tool) => isServerTool(tool, prefix))
}

/** Whether a tool runs at the vendor. Such tools have a dated type: `web_search_20250305`. */
export function isServerTool(tool: unknown, prefix: string): tool is Record<string, unknown> {
  return isJsonObject(tool) && typeof tool['type'] === 'string' && tool['type'].startsWith(prefix)
}
