import type { MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import { requestTools, toolPaths } from '../../endpoints/messages/request-tools.ts'
import type { ExtraFeature } from '../vendor.ts'

/**
 * Tools that are billed only by tokens, or by a price field or model of their own, by type without date (Anthropic, "Tool
 * reference" and "Pricing"). Includes tools that callers run themselves.
 */
const KNOWN_TOOLS: ReadonlySet<string> = new Set([
  ...['custom', 'bash', 'computer', 'computer_toolset', 'browser_toolset', 'memory', 'text_editor', 'mcp_toolset'],
  ...['tool_search_tool_regex', 'tool_search_tool_bm25', 'web_fetch'],
  ...['web_search', 'code_execution', 'advisor'],
])

/**
 * Beta features that are billed only by tokens, or by a price field of their own, without their dates.
 *
 * Nearly all are in the type `AnthropicBeta` of `@anthropic-ai/sdk` 1.11. That they cost only tokens follows from their pages
 * ("Beta headers", "Pricing"). Betas of coding clients are not in any list of the vendor: they were observed in requests of Claude
 * Code (`claude-code`, `oauth`, `afk-mode`, `dangerous-tool-use`, `per-turn-control`, `redact-thinking`, `thinking-resumption`,
 * `prompt-caching-scope`, `summarize-connector-text`, `mid-conversation-system`, `advanced-tool-use`, `tool-search-tool`,
 * `effort`). That these cost nothing more is an estimate. Betas that another model or account pays for (`server-side-fallback`,
 * `fallback-credit`, `user-profiles-billing`) are left out.
 */
const KNOWN_BETAS: ReadonlySet<string> = new Set([
  ...['advanced-tool-use', 'advisor-tool', 'afk-mode', 'cache-diagnosis', 'claude-code', 'code-execution', 'compact'],
  ...['computer-use', 'context-1m', 'context-management', 'dangerous-tool-use', 'dev-full-thinking', 'effort'],
  ...['extended-cache-ttl', 'fast-mode', 'files-api', 'fine-grained-tool-streaming', 'inline-tools'],
  ...['interleaved-thinking', 'max-tokens-3-5-sonnet', 'mcp-client', 'message-threads', 'mid-conversation-system'],
  ...['mid-conversation-tool-changes', 'model-context-window-exceeded', 'oauth', 'output-128k', 'pdfs'],
  ...['per-turn-control', 'prompt-caching', 'prompt-caching-scope', 'redact-thinking', 'search-results', 'skills'],
  ...['structured-outputs', 'summarize-connector-text', 'task-budgets', 'thinking-display-updates'],
  ...['thinking-token-count', 'token-counting', 'token-efficient-tools', 'tool-examples', 'tool-search-tool'],
  ...['mid-conversation-output-config', 'mid-conversation-system-clear-at', 'output-300k', 'thinking-binding-controls'],
  ...['thinking-resumption', 'user-profiles', 'web-fetch', 'web-search'],
])

const DATE = /[-_]\d{4}-?\d{2}-?\d{2}$/

/** Returns the features of a Messages request that may cost more than tokens and known price fields. */
export function extraFeatures(
  request: MessagesRequest,
  header: (name: string) => string | undefined,
): readonly ExtraFeature[] {
  const extras: ExtraFeature[] = []
  const pathOf = toolPaths(request)
  for (const [place, { type }] of requestTools(request).entries()) {
    if (type === undefined || type === null) continue
    const name = String(type)
    if (!KNOWN_TOOLS.has(name.replace(DATE, '')))
      extras.push({ field: 'server_tool', value: name, param: `${pathOf(place)}.type` })
  }
  for (const value of (header('anthropic-beta') ?? '').split(',')) addBeta(extras, value, 'anthropic-beta')
  const { betas, fallbacks } = request
  if (Array.isArray(betas)) for (const [index, value] of betas.entries()) addBeta(extras, value, `betas[${index}]`)
  // Another model then answers at its own price: one of this list, or the vendor's choice for `default`.
  if (Array.isArray(fallbacks) ? fallbacks.length > 0 : fallbacks !== undefined && fallbacks !== null)
    extras.push({ field: 'fallbacks', value: 'true', param: 'fallbacks' })
  return extras
}

function addBeta(extras: ExtraFeature[], beta: unknown, param: string): void {
  const value = String(beta).trim()
  if (value !== '' && !KNOWN_BETAS.has(value.replace(DATE, ''))) extras.push({ field: 'beta', value, param })
}
