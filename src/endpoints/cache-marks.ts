import { isJsonObject } from '../core/json.ts'

/** A mark of a caller's at a part of a prompt, or at a tool: a vendor should cache what stands up to it. */
export interface CacheMark {
  /** The member by which the caller wrote it. */
  readonly field: 'cache_control' | 'prompt_cache_breakpoint'
  /** For an hour or longer, and not for some minutes. */
  readonly isLong: boolean
}

/** The mark at a part or tool: `cache_control` (Anthropic) or `prompt_cache_breakpoint` (OpenAI); undefined: it has none. */
export function cacheMarkOf(part: object): CacheMark | undefined {
  const { cache_control: control, prompt_cache_breakpoint: breakpoint } = part as Readonly<Record<string, unknown>>
  if (isJsonObject(control)) return { field: 'cache_control', isLong: control['ttl'] === '1h' }
  if (!isJsonObject(breakpoint)) return undefined
  return { field: 'prompt_cache_breakpoint', isLong: breakpoint['ttl'] === '12h' }
}

/** How long the marks of a prompt ask for it to be cached; the longest one counts. */
export type CacheTime = 'none' | 'minutes' | 'hour'

/** A request of OpenAI's dialects, as far as it has marks. */
interface MarkedRequest {
  readonly messages: readonly object[]
  readonly tools?: unknown
  /** A mark of all of it (OpenRouter, "Prompt Caching"; Anthropic, "Automatic caching"). */
  readonly cache_control?: unknown
}

/** The longest time that the marks of a chat ask for. */
export function chatCacheTime({ messages, tools, cache_control }: MarkedRequest): CacheTime {
  let longest = longestOf(tools, cache_control === undefined ? 'none' : longestOf([{ cache_control }], 'none'))
  for (const message of messages) longest = longestOf((message as { readonly content?: unknown }).content, longest)
  return longest
}

function longestOf(parts: unknown, before: CacheTime): CacheTime {
  let longest = before
  if (!Array.isArray(parts) || longest === 'hour') return longest
  for (const part of parts) {
    const mark = isJsonObject(part) ? cacheMarkOf(part) : undefined
    if (mark !== undefined) longest = mark.isLong ? 'hour' : longest === 'none' ? 'minutes' : longest
  }
  return longest
}
