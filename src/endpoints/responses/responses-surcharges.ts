import type { BillingFields } from '../../catalog/prices/prices.ts'
import { isJsonObject } from '../../core/json.ts'
import { chatSurcharges } from '../chat/chat-surcharges.ts'

/** Price fields of requests for which vendors charge more than by the tokens of their ordinary price list. */
export const RESPONSES_SURCHARGES = ['service_tier', 'web_search', 'file_search', 'code_interpreter'] as const

/** Tools that the vendor runs and charges for by the call or by the time. */
const PAID_TOOLS = ['web_search', 'file_search', 'code_interpreter'] as const

const NO_FIELDS: BillingFields = {}

/** Searches that a request is held for where it sets no end to them. */
const UNBOUNDED_SEARCHES = 10

/** The surcharges of a request for a response (OpenAI, "Pricing", built-in tools). */
export function responsesSurcharges(request: Readonly<Record<string, unknown>>): BillingFields {
  const { service_tier } = chatSurcharges(request)
  const used = PAID_TOOLS.filter((name) => hasTool(request, name))
  if (service_tier === undefined && used.length === 0) return NO_FIELDS
  return {
    ...(service_tier === undefined ? {} : { service_tier }),
    ...Object.fromEntries(used.map((name) => [name, 'true'])),
  }
}

/** How many searches a request is held for; undefined: it cannot search. */
export function responsesSearches(request: Readonly<Record<string, unknown>>): number | undefined {
  if (!hasTool(request, 'web_search')) return undefined
  const { max_tool_calls: bound } = request
  return typeof bound === 'number' ? bound : UNBOUNDED_SEARCHES
}

/** Tools stand in the request, and in items that bring more of them. */
function hasTool({ tools, input }: Readonly<Record<string, unknown>>, name: string): boolean {
  if (listHas(tools, name)) return true
  return Array.isArray(input) && input.some((item) => isJsonObject(item) && listHas(item['tools'], name))
}

/** Some tools have dated types: `web_search_2025_08_26`. */
function listHas(tools: unknown, name: string): boolean {
  return (
    Array.isArray(tools) &&
    tools.some((tool) => isJsonObject(tool) && typeof tool['type'] === 'string' && tool['type'].startsWith(name))
  )
}
