import { isJsonObject } from '../../../core/json.ts'

/** A request's tools without those that reach out into the web. */
export interface SiftedTools {
  /** Undefined when none is left. */
  readonly tools: readonly unknown[] | undefined
  /** Where the removed ones stood: `tools[0]`. */
  readonly removed: readonly string[]
}

const WEB_SEARCH = /search|urlcontext|googlemaps|mcpserver/

/**
 * Takes web-search tools out of a request (API specification, "Interactions-style image request", `tools`): every tool whose
 * type, or a member or type further inside, speaks of searching, of reading URLs, of maps or of a remote tool server, which
 * the vendor would call wherever the caller says. The caller's own functions stay, whatever they are called.
 */
export function withoutWebSearch(tools: readonly unknown[]): SiftedTools {
  const kept: unknown[] = []
  const removed: string[] = []
  for (const [index, tool] of tools.entries()) {
    if (isWebSearch(tool)) removed.push(`tools[${index}]`)
    else kept.push(tool)
  }
  return { tools: kept.length === 0 ? undefined : kept, removed }
}

function isWebSearch(tool: unknown): boolean {
  return !(isJsonObject(tool) && tool['type'] === 'function') && speaksOfSearch(tool)
}

// Bodies nest no deeper than callers' JSON may (64 levels), so the recursion is bounded.
function speaksOfSearch(value: unknown): boolean {
  if (typeof value === 'string') return matches(value)
  if (Array.isArray(value)) return value.some(speaksOfSearch)
  if (!isJsonObject(value)) return false
  return Object.entries(value).some(([name, member]) => {
    if (matches(name)) return true
    // Free texts (descriptions, addresses) may say anything.
    return typeof member === 'string' ? /types?$/i.test(name) && matches(member) : speaksOfSearch(member)
  })
}

function matches(name: string): boolean {
  return WEB_SEARCH.test(name.toLowerCase().replace(/[^a-z]/g, ''))
}
